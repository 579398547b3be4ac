"""Messages as lines of JSON on the standard input of the whole program, in the form of Claude Code's SDK."""

import base64
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from support.gemini_wire import GeminiWire
from support.isthmus_program import ISTHMUS, read_line
from support.scripted_wire import Reply, Say

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()


def message(*content: Any) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": list(content)}}) + "\n"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def turn(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    """Return the lines of one turn, to its result."""
    lines = [json.loads(read_line(process))]
    while lines[-1]["type"] != "result":
        lines.append(json.loads(read_line(process)))
    return lines


def test_messages_are_turns_of_one_session_in_one_process(tmp_path: Path, workspace: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    replies = [Reply.of(Say("First answer.")), Reply.of(Say("A picture.")), Reply.of(Say("Third answer."))]
    with GeminiWire(replies) as wire:
        environment = {**os.environ, "GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}
        command = [*ISTHMUS, "-m", "gemini:test", "--no-ide", "--data-dir", str(tmp_path / "d")]
        options = ("--input-format", "stream-json", "-o", "stream-json")

        def start(*further: str) -> "subprocess.Popen[str]":
            return subprocess.Popen(
                [*command, *options, *further], cwd=workspace, env=environment, text=True, encoding="utf-8",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip

        with start() as process:
            assert process.stdin is not None
            process.stdin.write(message(text("the first question")))
            process.stdin.flush()
            first = turn(process)
            process.stdin.write(message(text("what is on it?"), image))
            process.stdin.flush()
            second = turn(process)
            process.send_signal(signal.SIGINT)  # while it waits for a message
            [last] = turn(process)
            assert (process.wait(30), last["error"]["type"]) == (130, "FatalCancellationError")
        assert [lines[-2]["content"] for lines in (first, second)] == ["First answer.", "A picture."]
        assert first[0]["session_id"] == second[0]["session_id"]
        with start("--continue") as process:
            out, err = process.communicate(message(text("the third one")) + '{"type": "control_request"}\n', 100)
        lines = [json.loads(line) for line in out.splitlines()]
        assert lines[0]["session_id"] == first[0]["session_id"]
        assert "Third answer." in [line.get("content") for line in lines]
        assert (process.returncode, lines[-1]["error"]["type"]) == (42, "FatalInputError"), err
        assert "line 2 of the standard input" in err
        asked = [json.dumps(request.json["contents"]) for request in wire.requests if "contents" in request.json]
    assert ["the first question" in request for request in asked] == [True] * 3
    assert [PNG in request for request in asked] == [False, True, True]
