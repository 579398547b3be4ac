"""The literal messages of Zed, as its source of 2026 makes them (crates/agent_servers/src/acp), to the real program.

Zed itself is no package that tests may install. Its ids are texts, it offers files and terminals, and it names all
folders of a project.
"""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.acp_client import model_option
from support.streamed_program import StreamedProgram, streamed_program

pytestmark = pytest.mark.anyio

INITIALIZE = """
{"jsonrpc":"2.0","id":"7d1f0f9e-0001","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":
{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},
"_meta":{"terminal_output":true,"terminal-auth":true}},
"clientInfo":{"name":"zed","title":"Zed","version":"0.230.1"}}}
"""
NEW = """
{"jsonrpc":"2.0","id":"7d1f0f9e-0002","method":"session/new","params":{"cwd":"CWD","additionalDirectories":["BESIDE"],
"mcpServers":[]}}
"""
MODE = """
{"jsonrpc":"2.0","id":"7d1f0f9e-0003","method":"session/set_mode","params":{"sessionId":"SESSION","modeId":"default"}}
"""
OPTION = """
{"jsonrpc":"2.0","id":"7d1f0f9e-0004","method":"session/set_config_option","params":{"sessionId":"SESSION",
"configId":"effort","value":"low"}}
"""
PROMPT = """
{"jsonrpc":"2.0","id":"7d1f0f9e-0005","method":"session/prompt","params":{"sessionId":"SESSION","prompt":[
{"type":"text","text":"write new.txt "},
{"type":"resource","resource":{"mimeType":"text/plain","text":"about it\\n","uri":"file://CWD/notes.md?symbol=a#L1:1"}},
{"type":"resource_link","name":"notes.md","uri":"file://CWD/notes.md"}]}}
"""
LIST = """{"jsonrpc":"2.0","id":"7d1f0f9e-0006","method":"session/list","params":{"cwd":"CWD"}}"""
LOAD = """
{"jsonrpc":"2.0","id":"7d1f0f9e-0007","method":"session/load","params":{"mcpServers":[],"cwd":"CWD",
"additionalDirectories":["BESIDE"],"sessionId":"SESSION"}}
"""
CLOSE = """{"jsonrpc":"2.0","id":"7d1f0f9e-0008","method":"session/close","params":{"sessionId":"SESSION"}}"""
LOGOUT = """{"jsonrpc":"2.0","id":"7d1f0f9e-0009","method":"logout","params":{}}"""
CHOSEN = '{"jsonrpc":"2.0","id":NUMBER,"result":{"outcome":{"outcome":"selected","optionId":"OPTION"}}}'
NO_FILE = '{"jsonrpc":"2.0","id":NUMBER,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"CWD"}}}'


@dataclass(slots=True)
class Zed:
    """The client. ``words`` are put in place of words in capital letters."""

    process: StreamedProgram
    words: dict[str, str]
    updates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: list[str] = field(default_factory=list[str])

    def send(self, literal: str, **words: str) -> None:
        """Send a message as one line."""
        line = literal.replace("\n", "")
        for word, value in {**self.words, **words}.items():
            line = line.replace(word, value)
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    async def call(self, literal: str) -> Any:
        """Send a request, answer what comes meanwhile, and return the result."""
        self.send(literal)
        wanted = json.loads(literal)["id"]
        while True:
            message = json.loads(await asyncio.wait_for(self.process.stdout.readline(), 60))
            match message:
                case {"id": str() as number, "result": result} if number == wanted:
                    return result
                case {"method": "session/update", "params": {"update": update}}:
                    self.updates.append(update)
                case {"method": "session/request_permission", "id": number, "params": params}:
                    self.asked.append(params["toolCall"]["title"])
                    option = next(item for item in params["options"] if item["kind"] == "allow_once")
                    self.send(CHOSEN, NUMBER=json.dumps(number), OPTION=option["optionId"])
                case {"method": "fs/read_text_file", "id": number}:
                    self.send(NO_FILE, NUMBER=json.dumps(number))
                case _:
                    raise AssertionError(message)

    def text(self, kind: str) -> str:
        """Return the text of all chunks of a kind."""
        return "".join(one["content"]["text"] for one in self.updates if one["sessionUpdate"] == kind)


async def test_a_thread_of_zed_in_a_project_of_two_folders(tmp_path: Path, workspace: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (workspace / "notes.md").write_text("about it\n", encoding="utf-8")
    async with streamed_program("acp", "--model", model_option(tmp_path), folder=workspace) as process:
        zed = Zed(process, {"CWD": str(workspace), "BESIDE": str(beside)})
        greeting = await zed.call(INITIALIZE)
        assert greeting["protocolVersion"] == 1
        able = greeting["agentCapabilities"]
        assert able["loadSession"]
        assert {"list", "resume", "close", "delete", "additionalDirectories"} <= able["sessionCapabilities"].keys()
        assert able["auth"] == {"logout": {}}
        opened = await zed.call(NEW)
        zed.words["SESSION"] = opened["sessionId"]
        assert opened["modes"]["currentModeId"] == "default"
        assert await zed.call(MODE) == {}
        changed = {option["id"]: option["currentValue"] for option in (await zed.call(OPTION))["configOptions"]}
        assert changed["effort"] == "low"
        ended = await zed.call(PROMPT)
        assert ended["stopReason"] == "end_turn"
        assert zed.asked == ["Let the agent work in further folders, which your editor names?", "Write new.txt"]
        assert (workspace / "new.txt").read_text(encoding="utf-8") == "one\ntwo\n"
        assert zed.text("agent_message_chunk").endswith("It is written.")
        (listed,) = (await zed.call(LIST))["sessions"]
        about = (listed["sessionId"], listed["cwd"], listed["additionalDirectories"])
        assert about == (zed.words["SESSION"], str(workspace), [str(beside)])
        zed.updates.clear()
        await zed.call(LOAD)
        assert "write new.txt" in zed.text("user_message_chunk")
        assert await zed.call(CLOSE) == {}
        assert await zed.call(LOGOUT) == {}
