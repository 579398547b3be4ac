"""The endpoint of the benchmark of sessions: a long answer in pieces, a short one for each turn."""

import json
from typing import Any

from bench.session import LAST, LONG, SHORT, TOKENS, TURNS, answer

from support.wire_server import WireRequest


def asked(text: str, path: str = "/v1beta/models/m:streamGenerateContent", **more: Any) -> str:
    """Return the text of the answer to a request whose last message is ``text``."""
    body = {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}
    found = answer(WireRequest("POST", path, "", {}, json.dumps(body).encode()))
    return b"".join(piece for piece in found.pieces if isinstance(piece, bytes)).decode()


def test_only_the_agents_own_request_gets_the_long_answer() -> None:
    tools = [{"functionDeclarations": [{"name": "read_file"}]}]
    story = asked(LONG, tools=tools)
    assert story.count("data: ") == TOKENS + 1
    assert LAST in story
    assert LAST not in asked(f"Is this complex? {LONG}")


def test_each_turn_gets_an_answer_of_its_own() -> None:
    tools = [{"functionDeclarations": [{"name": "read_file"}]}]
    assert f"Answer to {TURNS}." in asked(f"{LONG} {SHORT} 1 {SHORT} {TURNS}", tools=tools)
    assert json.loads(asked("x", "/v1beta/models/m:countTokens")) == {"totalTokens": 10}
