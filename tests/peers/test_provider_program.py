"""The program in a terminal with a provider's wire: a plan, the web, and another model in place of a busy one."""

import json
import os
from pathlib import Path

from support.gemini_wire import GeminiWire
from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.scripted_wire import Call, Failure, Reply, Say, Script
from support.session_terminal import PROMPT
from support.wire_server import Answer, WireRequest

FOUND = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "Version 9 is out."}]},
            "finishReason": "STOP",
            "groundingMetadata": {
                "groundingChunks": [{"web": {"uri": "https://news.test/9", "title": "news.test"}}],
                "groundingSupports": [{"segment": {"endIndex": 17}, "groundingChunkIndices": [0]}],
            },
        }
    ]
}
TODOS = [{"description": "Look up the version", "status": "in_progress"}, {"description": "Tell", "status": "pending"}]


class Provider:
    """Answers of one model; another one, `busy`, is always overloaded. A search of the web is a request of its own."""

    def __init__(self) -> None:
        self.replies: list[Script] = [
            Reply.of(Call("write_todos", {"todos": TODOS})),
            Reply.of(Call("google_web_search", {"query": "newest version"})),
            Reply.of(Call("web_fetch", {"url": "http://127.0.0.1:9/page"})),
            Reply.of(Say("It is version 9.")),
        ]
        self.searched = 0

    def __call__(self, request: WireRequest) -> Script:
        if "gemini-busy" in request.path:
            return Failure(503, "overloaded")
        if request.json.get("tools") == [{"googleSearch": {}}]:
            self.searched += 1
            return Answer(200, {"content-type": "text/event-stream"}, (f"data: {json.dumps(FOUND)}\r\n\r\n".encode(),))
        return self.replies.pop(0)


def test_a_plan_a_search_a_page_and_a_fallback(
    workspace: Path, tmp_path: Path, isolated_folders: IsolatedFolders, loaded_isthmus: LoadedProgram
) -> None:
    settings = isolated_folders.home / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"isthmus": {"fallbackModels": ["gemini:gemini-test"]}}), "utf-8")
    provider = Provider()
    with GeminiWire(provider) as wire:
        variables = {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url, "TERM": "xterm-256color"}
        command = ["-m", "gemini:gemini-busy", "--no-ide", "--data-dir", str(tmp_path / "data")]
        environment = {**os.environ, **variables}
        with loaded_isthmus.terminal(
            *command, folder=workspace, environment=environment, columns=100, rows=60
        ) as terminal:
            terminal.wait_for(PROMPT).press("which version?\r")
            terminal.wait_for("Look up the version").wait_for("news.test")
            terminal.wait_for("Fetch http://127.0.0.1:9/page").wait_for("1  Allow once").press("1")
            terminal.wait_for("It is version 9.").wait_for(PROMPT)
            assert "overloaded" in terminal.screen
    assert provider.searched == 1
    told = json.dumps(wire.model_requests[-1].json["contents"])
    assert "Version 9 is out.[1]" in told
    assert "[1] news.test (https://news.test/9)" in told
    assert "only public addresses are reached" in told
