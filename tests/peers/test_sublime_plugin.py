"""The Sublime Text plugin: its real code, in a host with Sublime's API, with the real companion and an agent."""

import ast
import json
import os
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.files.locations import data_directory
from isthmus.ide.reviews.kept_text import KeptTexts
from support.companion import Agent, attached_agent
from support.isolation import IsolatedFolders
from support.sublime_host import PACKAGE, Region, SublimeHost, View, loaded_plugin
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def sublime(workspace: Path, isolated_folders: IsolatedFolders) -> Generator[SublimeHost]:
    with loaded_plugin(workspace) as host:
        eventually(lambda: any("can find" in message for message in host.messages), 60, what="the companion is ready")
        yield host
    eventually(
        lambda: not list((isolated_folders.temporary / "gemini" / "ide").glob("*")), what="the companion has gone"
    )


@pytest.fixture
async def agent(sublime: SublimeHost, isolated_folders: IsolatedFolders) -> AsyncGenerator[Agent]:
    (file,) = (isolated_folders.temporary / "gemini" / "ide").glob("*.json")
    discovered: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert discovered["ideInfo"] == {"name": "sublime", "displayName": "Sublime Text"}
    async with attached_agent(f"http://127.0.0.1:{discovered['port']}/mcp", discovered["authToken"]) as agent:
        yield agent


def made(workspace: Path, content: bytes = "é😀x = 1\r\ny = 2\r\n".encode()) -> Path:
    path = workspace / "a.py"
    path.write_bytes(content)
    return path


async def review(sublime: SublimeHost) -> View:
    """Return the view of the proposed text."""

    def shown() -> View | None:
        views: list[View] = sublime.do(sublime.window.views)
        return next((view for view in views if view.settings().get("isthmus_review")), None)

    view = await eventually_async(shown, what="the review")
    assert view is not None
    return view


def test_it_is_of_the_python_that_sublime_has() -> None:
    for file in PACKAGE.rglob("*.py"):
        ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))
    assert (PACKAGE / ".python-version").read_text(encoding="utf-8") == "3.8\n"
    # Each file of the folder itself is loaded as a plugin, and again if another one has imported it.
    assert [file.name for file in PACKAGE.glob("*.py")] == ["Isthmus.py"]
    listed = {entry["command"] for entry in json.loads((PACKAGE / "Default.sublime-commands").read_text("utf-8"))}
    names = ("start", "stop", "accept", "reject", "accept_hunk", "reject_hunk", "mention")
    assert listed == {f"isthmus_{name}" for name in names}


async def test_the_agent_sees_file_cursor_and_selection(sublime: SublimeHost, agent: Agent, workspace: Path) -> None:
    path = made(workspace)
    view: View = sublime.do(lambda: sublime.window.open_file(str(path)))

    def select() -> None:
        view.selection[:] = [Region(2, 7)]
        sublime.listener.on_selection_modified(view)

    sublime.do(select)
    context = await agent.sees(path=str(path), isActive=True, selectedText="x = 1")
    assert context["workspaceState"]["openFiles"][0]["cursor"] == {"line": 1, "character": 9}


@pytest.mark.parametrize("typed", ["3", "33"], ids=["as is", "edited"])
async def test_an_edit_is_reviewed_in_a_tab_and_accepted(
    sublime: SublimeHost, agent: Agent, workspace: Path, typed: str
) -> None:
    path = made(workspace)
    proposed = "é😀x = 1\r\ny = 3\r\n"
    await agent.open_diff(path, proposed)
    view = await review(sublime)
    assert view.text == proposed.replace("\r\n", "\n")
    assert view.reference == "é😀x = 1\ny = 2\n"
    view.text = view.text.replace("3", typed)
    sublime.do(lambda: view.run_command("isthmus_accept"))
    accepted = await agent.notified("ide/diffAccepted")
    assert accepted == {"filePath": str(path), "content": proposed.replace("3", typed)}
    assert sublime.do(sublime.window.views) == []
    assert path.read_bytes().endswith(b"y = 2\r\n")


async def test_a_file_that_an_agent_writes_without_a_review_is_read_again(
    sublime: SublimeHost, agent: Agent, workspace: Path
) -> None:
    path = made(workspace, b"\xef\xbb\xbfold\r\n")
    view: View = sublime.do(lambda: sublime.window.open_file(str(path)))
    await agent.sees(path=str(path), isActive=True)
    for number in range(2):
        path.write_bytes(f"\ufeffnew {number}\r\n".encode())
        await eventually_async(lambda number=number: view.text == f"new {number}\n", what="the new text")
    assert view.reverts == 2
    path.touch()  # with the text that the view has
    other = workspace / "b.py"
    other.write_bytes(b"old\n")
    second: View = sublime.do(lambda: sublime.window.open_file(str(other)))
    second.text = "mine\n"
    for text in ("new\n", "a newer text\n"):
        other.write_text(text)
        path.write_text(f"\ufeff{text}")
        await eventually_async(lambda text=text: view.text == text, what="the text of the other file")
    assert (second.text, view.reverts) == ("mine\n", 4)
    assert [message for message in sublime.messages if "changed on disk" in message] == [
        "b.py has changed on disk; your unsaved text stays as it is"
    ]
    view.settings().set("reload_file_on_change", False)
    second.text = second.saved
    path.write_text("not wanted\n")
    other.write_text("wanted\n")
    await eventually_async(lambda: second.text == "wanted\n", what="the text of the other file")
    assert view.text == "a newer text\n"


OLD_LINES, NEW_LINES = "one\ntwo\nthree\nfour\nfive\n", "ONE\ntwo\nfour\nFIVE\nsix\n"


@pytest.mark.parametrize(
    ("presses", "accepted"),
    [
        (["reject 0 0"], "one\ntwo\nfour\nFIVE\nsix\n"),
        (["reject 2 2"], "ONE\ntwo\nthree\nfour\nFIVE\nsix\n"),
        (["reject 4 4"], "ONE\ntwo\nfour\nfive\n"),
        (["reject 0 4", "accept 0 0"], "ONE\ntwo\nthree\nfour\nfive\n"),
        (["reject 0 4", "accept 2 2"], "one\ntwo\nfour\nfive\n"),
        (["accept 0 4"], NEW_LINES),
        (["reject 1 1", "accept 1 2"], NEW_LINES),
    ],
)
async def test_hunks_are_accepted_and_rejected_one_by_one(
    sublime: SublimeHost, agent: Agent, workspace: Path, presses: list[str], accepted: str
) -> None:
    await agent.open_diff(made(workspace, OLD_LINES.encode()), NEW_LINES)
    view = await review(sublime)
    for press in presses:
        command, first, last = press.split()
        start, end = (sublime.do(lambda row=row: view.text_point(int(row), 0)) for row in (first, last))
        view.selection[:] = [Region(start, end)]
        sublime.do(lambda command=command: view.press(f"isthmus_{command}_hunk"))
    sublime.do(lambda: view.press("isthmus_accept"))
    assert (await agent.notified("ide/diffAccepted"))["content"] == accepted


async def test_no_hunk_is_decided_in_a_review_that_came_up_only_now(
    sublime: SublimeHost, agent: Agent, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sublime.pause, "READING", 2.0)
    monkeypatch.setattr(sublime.pause, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    await agent.open_diff(made(workspace, OLD_LINES.encode()), NEW_LINES)
    view = await review(sublime)
    sublime.do(lambda: view.press("isthmus_reject_hunk"))
    assert view.text == NEW_LINES
    assert "came up only now" in sublime.messages[-1]


async def test_closing_the_tab_rejects(sublime: SublimeHost, agent: Agent, workspace: Path) -> None:
    path = made(workspace)
    await agent.open_diff(path, "new\n")
    view = await review(sublime)
    view.text = "typed\n"
    sublime.do(view.close)
    assert (await agent.notified("ide/diffRejected"))["filePath"] == str(path)
    assert f"Isthmus: rejected {view.name()}" in sublime.messages
    assert agent.named("ide/diffAccepted") == []
    (kept,) = await eventually_async(KeptTexts(data_directory() / "kept").paths, what="what was typed is kept")
    assert Path(kept).read_text(encoding="utf-8") == "typed\n"


async def test_keys_that_come_when_a_review_took_the_focus_go_to_ones_own_file(
    sublime: SublimeHost, agent: Agent, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = made(workspace, b"old\n")
    clock = [1000.0]
    monkeypatch.setattr(sublime.pause, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(sublime.pause, "READING", 2.0)
    own_view: View = sublime.do(lambda: sublime.window.open_file(str(own)))
    own_view.text = "mine\n"
    await agent.open_diff(workspace / "b.py", "new\n")
    view = await review(sublime)
    assert sublime.do(sublime.window.active_view) is view
    clock[0] += 1.9
    sublime.do(lambda: view.press("isthmus_accept"))
    assert sublime.messages[-1] == "Isthmus: this edit came up only now; read it, then accept it once more"
    sublime.do(lambda: view.press("save"))
    assert own.read_text() == "mine\n"
    assert sublime.do(sublime.window.active_view) is own_view
    clock[0] += 0.1
    sublime.do(lambda: sublime.window.focus_view(view))
    sublime.do(lambda: view.press("isthmus_accept"))
    assert (await agent.notified("ide/diffAccepted"))["content"] == "new\n"


async def test_text_that_is_typed_when_a_review_took_the_focus_is_text_of_ones_own_file(
    sublime: SublimeHost, agent: Agent, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sublime.pause, "READING", 2.0)
    own_view: View = sublime.do(lambda: sublime.window.open_file(str(made(workspace, b"old\n"))))
    monkeypatch.setattr(sublime.pause, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    await agent.open_diff(workspace / "b.py", "one one\n")
    view = await review(sublime)
    assert sublime.do(sublime.window.active_view) is view
    sublime.do(lambda: (view.type("o"), view.type("n")))
    sublime.do(lambda: None)  # the plugin's next step
    assert (view.text, own_view.text) == ("one one\n", "onold\n")
    assert sublime.do(sublime.window.active_view) is own_view
    assert any("a proposed edit waits in the tab" in message for message in sublime.messages)


async def test_text_typed_at_once_into_a_review_without_another_file_is_an_edit_of_it(
    sublime: SublimeHost, agent: Agent, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sublime.pause, "READING", 2.0)
    clock = [1000.0]
    monkeypatch.setattr(sublime.pause, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    await agent.open_diff(workspace / "b.py", "one\n")
    view = await review(sublime)
    sublime.do(lambda: view.type("my "))
    sublime.do(lambda: view.press("isthmus_accept"))
    assert agent.named("ide/diffAccepted") == []
    clock[0] += 2.1
    sublime.do(lambda: view.press("isthmus_accept"))
    assert (await agent.notified("ide/diffAccepted"))["content"] == "my one\n"


async def test_a_review_waits_in_its_tab_until_the_user_pauses(
    sublime: SublimeHost, agent: Agent, workspace: Path
) -> None:
    own_view: View = sublime.do(lambda: sublime.window.open_file(str(made(workspace))))
    clock = [1000.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sublime.pause, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        sublime.do(lambda: sublime.listener.on_modified(own_view))
        clock[0] += 0.9
        await agent.open_diff(workspace / "b.py", "new\n")
        view = await review(sublime)
        assert sublime.do(sublime.window.active_view) is own_view
        clock[0] += 0.2
        await eventually_async(lambda: sublime.do(sublime.window.active_view) is view, what="the review in front")


async def test_a_review_that_is_taken_back_is_closed_with_what_was_typed(
    sublime: SublimeHost, agent: Agent, workspace: Path
) -> None:
    path = made(workspace, b"old\n")
    await agent.open_diff(path, "new\n")
    view = await review(sublime)
    view.text = "typed\n"
    closed = await agent.close_diff(path)
    assert "typed" in closed.model_dump_json()
    assert sublime.do(sublime.window.views) == []


async def test_what_was_typed_is_kept_when_sublime_text_crashes(
    sublime: SublimeHost, agent: Agent, workspace: Path
) -> None:
    await agent.open_diff(made(workspace, b"old\n"), "new\n")
    view = await review(sublime)

    def type_and_crash() -> None:
        view.text = "typed\n"
        sublime.listener.on_modified(view)

    sublime.do(type_and_crash)
    sublime.do(lambda: None)  # the timer of the plugin has run
    sublime.crash()
    kept = KeptTexts(data_directory() / "kept")
    (path,) = await eventually_async(kept.paths, what="what was typed is kept")
    assert Path(path).read_text(encoding="utf-8") == "typed\n"


async def test_a_companion_that_is_stopped_and_started_at_once_stays(sublime: SublimeHost) -> None:
    former = sublime.companion
    assert former is not None
    told = len(sublime.messages)
    sublime.do(lambda: (sublime.stop(), sublime.start()))
    assert sublime.companion is not former
    eventually(lambda: any("can find" in message for message in sublime.messages[told:]), 60, what="the new companion")
    eventually(lambda: former.poll() is not None, 60, what="the end of the one before")
    sublime.do(lambda: None)  # its last message has arrived
    assert not any("has ended" in message for message in sublime.messages)


@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_terminals_do_not_lead_to_a_companion_that_is_gone(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    before = dict(os.environ)
    with loaded_plugin(workspace) as sublime:
        await eventually_async(lambda: "CLAUDE_CODE_SSE_PORT" in os.environ, 60, what="the variables")
        assert "127.0.0.1" in os.environ["NO_PROXY"].split(",")
        assert sublime.companion is not None
        if ending == "stop":
            sublime.do(sublime.stop)
        else:
            sublime.companion.kill()
        await eventually_async(lambda: os.environ == before, what="the variables are gone")
