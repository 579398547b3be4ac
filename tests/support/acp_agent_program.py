"""A scripted ACP agent: a plain program over standard streams, with the wire as literals.

The first argument names how it starts (``usual``, ``silent``, ``asks-login``, ``asks-own-login``, ``forgets``,
``junk``, ``replays-late``, ``many-folders``); the words of a prompt name what it does in the turn. It appends what it
received to ``acp-received.jsonl`` in its HOME, and keeps the ids of its sessions there, so that they can be loaded by
another process.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOME = Path(os.environ["HOME"])
RECEIVED = HOME / "acp-received.jsonl"
SESSIONS = HOME / "acp-sessions"
OPTIONS = [
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class Cancelled(Exception):
    """The client cancelled the turn."""


class ScriptedAgent:
    """One process: its sessions and the request that it carries out."""

    def __init__(self, start: str) -> None:
        self.start = start
        self.number = 0
        self.session = ""
        self.cwd = Path()
        self.folders: list[Path] = []
        self.about_turn: dict[str, Any] = {}
        self.loses_errors = False

    # --- the wire ---

    def send(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def receive(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        message: dict[str, Any] = json.loads(line)
        with RECEIVED.open("a", encoding="utf-8") as file:
            file.write(line)
        return message

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        own = f"a{self.number}"
        self.send({"id": own, "method": method, "params": {"sessionId": self.session, **params}})
        while True:
            message = self.receive()
            if message.get("id") == own:
                return message
            if message.get("method") == "session/cancel":
                self.cancelled_while_waiting = True

    def update(self, what: str, **members: Any) -> None:
        params = {"sessionId": self.session, "update": {"sessionUpdate": what, **members}}
        self.send({"method": "session/update", "params": params})

    def say(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def permission(self, call: dict[str, Any]) -> str:
        answer = self.ask("session/request_permission", {"toolCall": call, "options": OPTIONS})
        outcome = answer["result"]["outcome"]
        if outcome["outcome"] == "cancelled":
            raise Cancelled
        return str(outcome["optionId"])

    # --- requests ---

    def run(self) -> None:
        while True:
            message = self.receive()
            match message.get("method"):
                case "initialize":
                    self.initialize(message["id"])
                case "session/new":
                    self.new(message["id"], message["params"])
                case "session/load":
                    self.load(message["id"], message["params"])
                case "session/prompt":
                    text = "".join(block.get("text", "") for block in message["params"]["prompt"])
                    self.turn(message["id"], text)
                case _:
                    pass

    def initialize(self, number: int) -> None:
        if self.start == "silent":
            time.sleep(600)  # delay: the agent hangs until it is killed
        if self.start == "junk":
            sys.stdout.write("Welcome!\n{not json\n[]\n" + '{"jsonrpc": "2.0", "method": 7}\n')
        result: dict[str, Any] = {"protocolVersion": 1, "agentInfo": {"name": "scripted", "version": "1"}}
        able: dict[str, Any] = {"loadSession": True, "promptCapabilities": {"image": True}}
        if self.start == "many-folders":
            able["sessionCapabilities"] = {"additionalDirectories": {}}
        result["agentCapabilities"] = able
        if self.start == "asks-login":
            methods = [{"id": "site", "name": "Log in to the site"}, {"id": "key", "name": "Use a key"}]
            result["authMethods"] = methods
        self.send({"id": number, "result": result})

    def new(self, number: int, params: dict[str, Any]) -> None:
        if self.start.startswith("asks-") and not (HOME / "logged-in").exists():
            self.send({"id": number, "error": {"code": -32000, "message": "Authentication required"}})
            return
        SESSIONS.mkdir(exist_ok=True)
        self.folders = [Path(folder) for folder in params.get("additionalDirectories", ())]
        self.session, self.cwd = f"s{len(list(SESSIONS.iterdir())) + 1}", Path(params["cwd"])
        (SESSIONS / self.session).touch()
        self.send({"id": number, "result": {"sessionId": self.session}})
        commands = [
            {"name": "memory", "description": "Manage memory"},
            {"name": "memory show", "description": "Show it", "input": {"hint": "what"}},
            {"name": "git:commit", "description": "Commit"},
        ]
        self.update("available_commands_update", availableCommands=commands)

    def load(self, number: int, params: dict[str, Any]) -> None:
        if self.start == "forgets" or not (SESSIONS / params["sessionId"]).exists():
            self.send({"id": number, "error": {"code": -32603, "message": "No previous sessions"}})
            return
        self.session, self.cwd = params["sessionId"], Path(params["cwd"])
        self.folders = [Path(folder) for folder in params.get("additionalDirectories", ())]
        self.update("user_message_chunk", content={"type": "text", "text": "an old prompt"})
        if self.start != "replays-late":
            self.say("an old answer")
        self.send({"id": number, "result": None})
        if self.start == "replays-late":  # as Gemini CLI 0.61 does
            time.sleep(0.05)  # delay: the answer comes late, after the response
            self.say("an old answer")

    def turn(self, number: int, text: str) -> None:
        do = getattr(self, text.split()[-1].replace("-", "_"), self.echo)
        try:
            reason = do(text) or "end_turn"
        except Cancelled:
            reason = "cancelled"
        if isinstance(reason, str):
            self.send({"id": number, "result": {"stopReason": reason, **self.about_turn}})
            self.about_turn = {}
        else:
            self.send({"id": number, "error": reason})

    # --- turns ---

    def echo(self, text: str) -> None:
        self.update("agent_thought_chunk", content={"type": "text", "text": "**Think.** About "})
        self.update("agent_thought_chunk", content={"type": "text", "text": "it."})
        self.say("You said: ")
        self.say(text)

    def edit(self, text: str) -> None:
        """Ask, then write through the client."""
        path = self.cwd / "a.txt"
        old = self.ask("fs/read_text_file", {"path": str(path)})["result"]["content"]
        call = {"toolCallId": "edit-1", "title": "Write a.txt", "kind": "edit", "status": "pending"}
        diff = {"type": "diff", "path": str(path), "oldText": old, "newText": old.replace("two", "TWO")}
        if self.permission({**call, "content": [diff]}) == "no":
            self.update("tool_call_update", toolCallId="edit-1", status="failed")
            self.say("Rejected.")
            return
        written = self.ask("fs/write_text_file", {"path": str(path), "content": diff["newText"]})
        if "error" in written:
            said = "Error writing to file: [object Object]" if self.loses_errors else written["error"]["message"]
            content = [{"type": "content", "content": {"type": "text", "text": said}}]
            self.update("tool_call_update", toolCallId="edit-1", status="failed", content=content)
            return
        self.update("tool_call_update", toolCallId="edit-1", status="completed", content=[diff])
        self.say("Written.")

    def usage(self, text: str) -> None:
        """State the tokens of the turn as most agents do, the context and the cost."""
        self.update("usage_update", used=53_000, size=200_000, cost={"amount": 0.42, "currency": "USD"})
        counts = {"inputTokens": 35, "outputTokens": 12, "thoughtTokens": 5, "cachedReadTokens": 100}
        self.about_turn = {"usage": {"totalTokens": 152, **counts}}

    def usage_within(self, text: str) -> None:
        """State cached and thought tokens as parts of the others, and no cost."""
        self.update("usage_update", used=1000, size=200_000)
        counts = {"inputTokens": 135, "outputTokens": 17, "thoughtTokens": 5, "cachedReadTokens": 100}
        self.about_turn = {"usage": {"totalTokens": 152, **counts}}

    def quota(self, text: str) -> None:
        """State the tokens as Gemini CLI does."""
        count = {"input_tokens": 30, "output_tokens": 4}
        models: list[dict[str, Any]] = [
            {"model": "gemini-x", "token_count": count},
            {"model": "idle", "token_count": {}},
        ]
        self.about_turn = {"_meta": {"quota": {"token_count": count, "model_usage": models}}}

    def usage_of_requests(self, text: str) -> None:
        """State the tokens of two requests as Qwen Code does, with thoughts beside the rest, and those of the turn."""
        for given in (100, 200):
            counts = {"inputTokens": given, "outputTokens": 10, "thoughtTokens": 5, "cachedReadTokens": 50}
            usage = {"usage": {"totalTokens": given + 15, **counts}, "durationMs": 7}
            self.update("agent_message_chunk", content={"type": "text", "text": ""}, _meta=usage)
        self.about_turn = {"usage": {"totalTokens": 330, "inputTokens": 300, "outputTokens": 30}}

    def usage_wrong(self, text: str) -> None:
        """State what is no usage."""
        self.update("usage_update", used=7, size=100, cost={"amount": "much", "currency": 5})
        self.about_turn = {"usage": {"totalTokens": "many", "inputTokens": -1, "outputTokens": 1.5}}

    def beside(self, text: str) -> None:
        """Write a file in the first further folder, through the client."""
        path = str(self.folders[0] / "beside.txt")
        written = self.ask("fs/write_text_file", {"path": path, "content": "here\n"})
        self.say(written["error"]["message"] if "error" in written else "Written.")

    def edit_and_lose_errors(self, text: str) -> None:
        """Do the same, and take an error of the client for a text, as Gemini CLI does."""
        self.loses_errors = True
        self.edit(text)

    def greeting(self, text: str) -> None:
        """Think, ask, then create a file through the client."""
        self.update("agent_thought_chunk", content={"type": "text", "text": "**Greet** In a file."})
        path = str(self.cwd / "greeting.txt")
        call = {"toolCallId": "greet-1", "title": "Write greeting.txt", "kind": "edit", "status": "pending"}
        diff = {"type": "diff", "path": path, "oldText": None, "newText": "hello\n"}
        self.permission({**call, "content": [diff]})
        self.ask("fs/write_text_file", {"path": path, "content": diff["newText"]})
        self.update("tool_call_update", toolCallId="greet-1", status="completed", content=[diff])
        self.say("I wrote the greeting.")

    def edit_then_wait(self, text: str) -> None:
        self.edit(text)
        self.wait(text)

    def snippet(self, text: str) -> None:
        """Ask with the passage alone, then write the file without the client."""
        path = self.cwd / "a.txt"
        diff = {"type": "diff", "path": str(path), "oldText": "two", "newText": "TWO"}
        call = {"toolCallId": "edit-1", "title": "Edit a.txt", "kind": "edit", "status": "pending", "content": [diff]}
        self.update("tool_call", **call)
        if self.permission(call) == "no":
            self.update("tool_call_update", toolCallId="edit-1", status="failed")
            return
        path.write_text(path.read_text(encoding="utf-8").replace("two", "TWO"), encoding="utf-8")
        self.update("tool_call_update", toolCallId="edit-1", status="completed")

    def shell(self, text: str) -> None:
        call = {"toolCallId": "shell-1", "title": "Run", "kind": "execute", "rawInput": {"command": "echo hi"}}
        self.update("tool_call", status="pending", **call)
        if self.permission({"toolCallId": "shell-1"}) == "no":
            return
        self.update("tool_call_update", toolCallId="shell-1", status="in_progress")
        output = [{"type": "content", "content": {"type": "text", "text": "hi\n"}}]
        self.update("tool_call_update", toolCallId="shell-1", status="in_progress", content=output)
        self.update("tool_call_update", toolCallId="shell-1", status="completed", content=output)
        self.say("Ran.")

    def form(self, text: str) -> None:
        """Ask for a name and an age, and a color as the only field."""
        properties = {"name": {"type": "string", "title": "Your name"}, "age": {"type": "integer", "minimum": 0}}
        schema = {"type": "object", "properties": properties, "required": ["name"]}
        self.say(json.dumps(self.elicit(message="Who are you?", requestedSchema=schema)))

    def color(self, text: str) -> None:
        """Ask for a color."""
        colors = [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]
        schema = {"type": "object", "properties": {"color": {"type": "string", "oneOf": colors}}}
        self.say(json.dumps(self.elicit(message="Which color?", requestedSchema=schema)))

    def page(self, text: str) -> None:
        """Ask what a client cannot show."""
        page = {"mode": "url", "message": "Log in", "url": "https://example.org", "elicitationId": "e"}
        nested = {"type": "object", "properties": {"a": {"type": "object"}}}
        for params in (page, {"message": "?", "requestedSchema": nested, "mode": "form"}, {"mode": "form"}):
            assert self.ask("elicitation/create", params)["error"]["code"] == -32602
        self.say("Refused.")

    def elicit(self, **members: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("elicitation/create", {"mode": "form", **members})["result"]
        return result

    def die_asking(self, text: str) -> None:
        """End the process while the question is open."""
        call = {"toolCallId": "shell-1", "title": "Run", "kind": "execute", "rawInput": {"command": "echo hi"}}
        self.number += 1
        params = {"sessionId": self.session, "toolCall": call, "options": OPTIONS}
        self.send({"id": f"a{self.number}", "method": "session/request_permission", "params": params})
        while not (HOME / "die").exists():
            time.sleep(0.01)  # delay: pause between two looks for the file of the test
        os.kill(os.getpid(), signal.SIGKILL)

    def die(self, text: str) -> None:
        self.update("tool_call", toolCallId="d", title="Die", kind="execute", status="in_progress")
        os.kill(os.getpid(), signal.SIGKILL)

    def two(self, text: str) -> None:
        """Ask two questions at once, and do each when it is answered."""
        for call_id in ("first", "second"):
            params = {"sessionId": self.session, "toolCall": {"toolCallId": call_id}, "options": OPTIONS}
            self.send({"id": call_id, "method": "session/request_permission", "params": params})
        for _ in range(2):
            answer = self.receive()
            status = "completed" if answer["result"]["outcome"]["optionId"] == "once" else "failed"
            self.update("tool_call_update", toolCallId=answer["id"], status=status)
        self.say("Both answered.")

    def withdraw(self, text: str) -> None:
        """Ask, and withdraw the question."""
        params = {"sessionId": self.session, "toolCall": {"toolCallId": "w"}, "options": OPTIONS}
        self.send({"id": "w", "method": "session/request_permission", "params": params})
        while not (HOME / "withdraw").exists():
            time.sleep(0.01)  # delay: pause between two looks for the file of the test
        self.send({"method": "$/cancel_request", "params": {"requestId": "w"}})
        assert self.receive()["error"]["code"] == -32800
        self.say("Never mind.")

    def leave(self, text: str) -> None:
        """End the turn while a question is open."""
        params = {"sessionId": self.session, "toolCall": {"toolCallId": "l"}, "options": OPTIONS}
        self.send({"id": "left", "method": "session/request_permission", "params": params})

    def hang(self, text: str) -> None:
        """React to nothing, with a child of its own."""
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.say(f"Hanging with {child.pid}.")
        time.sleep(600)  # delay: the agent hangs until it is killed

    def wait(self, text: str) -> None:
        """Work until cancelled."""
        self.say("Working.")
        while self.receive().get("method") != "session/cancel":
            pass
        raise Cancelled

    def flood(self, text: str) -> None:
        for number in range(1000):
            self.update("tool_call", toolCallId=f"c{number % 7}", title="x" * 5000, kind="read", status="completed")
            self.say("y" * 100)
        sys.stderr.write("noise\n" * 10_000)

    def wrong(self, text: str) -> None:
        """Send what does not fit the protocol."""
        self.update("agent_message_chunk", content={"type": "text"})
        self.update("tool_call", toolCallId=7, status=[])
        self.update("unheard_of", anything={})
        self.send({"method": "session/update", "params": {"sessionId": "another", "update": {}}})
        self.send({"id": "junk", "result": 5})
        self.send({"id": "w1", "method": "terminal/create", "params": {"command": "id"}})
        while (answer := self.receive()).get("id") != "w1":
            pass
        assert answer["error"]["code"] == -32601
        outside = self.ask("fs/read_text_file", {"path": "/etc/passwd"})["error"]
        assert "outside the workspace" in outside["message"]
        assert outside["data"] == {"errorKind": "path_outside_workspace"}
        assert "error" in self.ask("fs/write_text_file", {"path": str(self.cwd / "link" / "x"), "content": "x"})
        none = str(self.cwd / "none")
        missing = self.ask("fs/read_text_file", {"path": none})["error"]
        assert (missing["code"], missing["data"]) == (-32002, {"uri": none})
        assert missing["message"] == f"Resource not found: {none} does not exist"
        self.say("Still here.")

    def read_secrets(self, text: str) -> None:
        """Read a file with secrets twice, and say what came."""
        for _ in range(2):
            answer = self.ask("fs/read_text_file", {"path": str(self.cwd / ".env")})
            self.say(answer["result"]["content"] if "result" in answer else answer["error"]["message"])

    def refuse(self, text: str) -> str:
        return "refusal"

    def fail(self, text: str) -> dict[str, Any]:
        return {"code": -32603, "message": "Internal error", "data": {"details": "the quota is used up"}}

    def environment(self, text: str) -> None:
        self.say(" ".join(sorted(os.environ)))


if __name__ == "__main__":
    ScriptedAgent(sys.argv[1] if len(sys.argv) > 1 else "usual").run()
