"""Generated lines of ACP that are wrong in a few places: requests, notifications and answers of a client."""

import json
import random
from collections.abc import Sequence
from typing import Any, cast

from support.mcp_frames import frame, value

METHODS = (
    *("auth/login", "auth/logout", "logout"),
    *("initialize", "authenticate", "session/new", "session/load", "session/resume", "session/list", "session/prompt"),
    *("session/set_mode", "session/set_config_option", "session/close", "session/delete", "session/cancel"),
    *("session/request_permission", "session/update", "$/cancel_request", "fs/read_text_file", "no/such\nmethod", ""),
)
_URIS = ("file:///w/a.py", "file://[", "http://[::1", "x:", "", "file:///%00%ff", "../..", "\u202e")
_BLOCKS: Sequence[dict[str, Any]] = (
    {"type": "text", "text": "hello"},
    {"type": "text", "text": "/about \ud83d"},
    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    {"type": "audio", "data": "", "mimeType": ""},
    {"type": "resource_link", "uri": "file:///w/a.py", "name": "a"},
    {"type": "resource", "resource": {"uri": "file:///w/a.py", "text": "```"}},
    {"type": "resource", "resource": {"uri": "file:///w/a.py", "blob": "AAAA"}},
    {"type": "video"},
)
_SERVERS: Sequence[dict[str, Any]] = (
    {"type": "http", "name": "n", "url": "http://127.0.0.1:9/", "headers": [{"name": "a", "value": "b"}]},
    {"type": "sse", "name": "n", "url": "", "headers": []},
    {"type": "stdio", "name": "n", "command": "/no/such/program", "args": [], "env": []},
    {"type": "magic"},
)


def line(chance: random.Random, session: str, cwd: str, version: int = 1) -> bytes:
    """Return a line, often one close to a request that would be carried out in a session or folder."""
    if chance.random() < 0.4:
        return frame(chance, METHODS).replace(b"@ID@", b"1")
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": chance.choice([0, -1, "1", "x" * 300, 10**30])}
    message["method"] = chance.choice(METHODS)
    message["params"] = params_of(chance, message["method"], session, cwd, version)
    spoil(chance, message, 0.1)
    if chance.random() < 0.3:
        message.pop("id", None)
    return json.dumps(message).encode() + b"\n"


def params_of(chance: random.Random, method: str, session: str, cwd: str, version: int) -> dict[str, Any]:
    """Return parameters that mostly fit a method."""
    known: dict[str, Any] = {
        "sessionId": session,
        "cwd": cwd,
        "mcpServers": [],
        "protocolVersion": version,
        "methodId": "environment",
        "info": {"name": "n", "version": "1"},
        "capabilities": {"auth": {"terminal": {}}, "elicitation": {"form": {}}},
    }
    params: dict[str, Any]
    match method:
        case "session/prompt":
            blocks = [dict(chance.choice(_BLOCKS)) for _ in range(chance.randrange(4))]
            for block in blocks:
                if "uri" in block:
                    block["uri"] = chance.choice(_URIS)
            params = {"sessionId": session, "prompt": blocks}
        case "session/new" | "session/load" | "session/resume":
            servers = [chance.choice(_SERVERS) for _ in range(chance.randrange(3))]
            params = {"sessionId": session, "cwd": cwd, "mcpServers": servers}
            if chance.random() < 0.5:
                params["replayFrom"] = {"type": chance.choice(["start", "start", "end", None])}
        case "session/set_mode":
            params = {"sessionId": session, "modeId": chance.choice(["plan", "yolo", "", "x"])}
        case "session/set_config_option":
            params = {"sessionId": session, "configId": chance.choice(["mode", "model"]), "value": "plan"}
        case "$/cancel_request":
            params = {"requestId": chance.choice([0, -1, "1", 10**30])}
        case "session/list":
            params = {"cursor": chance.choice(["0", "1", "-", None])}
        case _:
            params = {name: known[name] for name in chance.sample(sorted(known), 3)}
    spoil(chance, params, 0.2)
    return params


def spoil(chance: random.Random, message: Any, share: float) -> None:
    """Replace some of the values in a message, at any depth, by others, or take them out."""
    names: Sequence[Any] = list(cast("dict[str, Any]", message)) if isinstance(message, dict) else range(len(message))
    for name in names:
        if chance.random() < share:
            message[name] = value(chance)
        elif isinstance(message[name], (dict, list)):
            message[name] = json.loads(json.dumps(message[name]))
            spoil(chance, message[name], share)
    if isinstance(message, dict) and names and chance.random() < share / 2:
        del message[chance.choice(names)]


def answer(chance: random.Random, option: str) -> dict[str, Any]:
    """Return the members of an answer to a question, mostly wrong in some place."""
    outcome: dict[str, Any] = {"outcome": chance.choice(["selected", "selected", "cancelled", "later"])}
    outcome["optionId"] = chance.choice([option, "no such option", ""])
    result: dict[str, Any] = {"outcome": outcome, "_meta": {"isthmus": {"newContent": "mine"}}}
    spoil(chance, result, 0.15)
    wrong = {"error": value(chance)} if chance.random() < 0.5 else {"result": value(chance)}
    return {"result": result} if chance.random() < 0.7 else wrong


AGENT_METHODS = (
    *("session/update", "session/request_permission", "fs/read_text_file", "fs/write_text_file", "terminal/create"),
    *("elicitation/create", "$/cancel_request", "session/prompt", "initialize", "no/such\nmethod", ""),
)
_TEXT = {"type": "text", "text": "hello \ud83d"}
_CALL: dict[str, Any] = {
    "toolCallId": "c1",
    "title": "Write",
    "kind": "edit",
    "status": "pending",
    "rawInput": {"a": 1},
    "locations": [{"path": "/w/a.py", "line": 1}],
    "content": [
        {"type": "content", "content": _TEXT},
        {"type": "diff", "path": "/w/a.py", "oldText": "one\n", "newText": "two\n"},
        {"type": "terminal", "terminalId": "t"},
    ],
}
_AGENT_UPDATES: Sequence[dict[str, Any]] = (
    {"sessionUpdate": "agent_message_chunk", "content": _TEXT, "messageId": "m"},
    {"sessionUpdate": "agent_thought_chunk", "content": _TEXT},
    {"sessionUpdate": "user_message_chunk", "content": _TEXT},
    {"sessionUpdate": "tool_call", **_CALL},
    {"sessionUpdate": "tool_call_update", **_CALL, "status": "completed", "rawOutput": [1]},
    {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress"},
    {"sessionUpdate": "plan", "entries": [{"content": "a", "priority": "high", "status": "pending"}]},
    {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "a b", "description": ""}]},
    {"sessionUpdate": "current_mode_update", "currentModeId": "plan"},
    {"sessionUpdate": "usage_update", "used": 1, "size": 2},
    {"sessionUpdate": "magic"},
)
_AGENT_OPTIONS = [
    {"optionId": "once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def agent_line(chance: random.Random, session: str, cwd: str) -> bytes:
    """Return a line of an agent, often one close to an update or a request that its host would carry out."""
    if chance.random() < 0.3:
        return frame(chance, AGENT_METHODS).replace(b"@ID@", b"1")
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": "session/update"}
    if chance.random() < 0.8:
        update = {**chance.choice(_AGENT_UPDATES)}
        if "toolCallId" in update:
            update["toolCallId"] = f"c{chance.randrange(20)}"
        message["params"] = {"sessionId": session, "update": update}
    else:
        message |= {"id": f"q{chance.randrange(10**6)}", "method": chance.choice(AGENT_METHODS)}
        path = chance.choice([f"{cwd}/a.txt", f"{cwd}/../a.txt", "/etc/passwd", "a.txt", "", "\0"])
        call = {**_CALL, "toolCallId": f"c{chance.randrange(20)}"}
        message["params"] = {"sessionId": session, "path": path, "content": "new\n", "line": 1, "limit": 1}
        message["params"] |= {"toolCall": call, "options": _AGENT_OPTIONS, "requestId": f"q{chance.randrange(9)}"}
    spoil(chance, message["params"], 0.05)
    spoil(chance, message, 0.01)
    return json.dumps(message).encode() + b"\n"
