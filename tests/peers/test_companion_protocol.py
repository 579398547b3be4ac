"""The Gemini CLI companion protocol over a real socket, with the MCP SDK's client as the agent CLI."""

import json
import time
from pathlib import Path

import pytest

from isthmus.ide.editor import Position, Range
from support.companion import REAL_CLIENT, BareAgent, attached_agent, bare_agent, running_companion
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "hello.py"
    path.write_text("one = 1\ntwo = 2\n", encoding="utf-8")
    return path


def _at(line: int, character: int, end_line: int, end_character: int) -> Range:
    return Range(Position(line, character), Position(end_line, end_character))


@pytest.mark.requirement("GEM-001", "GEM-002", "GEM-062", "GEM-071")
async def test_an_mcp_client_initializes_pings_and_finds_both_tools(workspace: Path) -> None:
    async with (
        running_companion(workspace) as companion,
        attached_agent(companion.url, companion.token) as agent,
    ):
        listed = await agent.client.list_tools()
        assert [tool.name for tool in listed.tools] == ["openDiff", "closeDiff"]
        assert [tool.input_schema["required"] for tool in listed.tools] == [["filePath", "newContent"], ["filePath"]]
        assert agent.client.protocol_version == "2025-11-25"


@pytest.mark.requirement("GEM-002")
async def test_a_client_that_probes_newer_protocol_versions_falls_back_to_a_handshake(workspace: Path) -> None:
    import httpx2
    import mcp
    from mcp.client.streamable_http import streamable_http_client

    async with running_companion(workspace) as companion:
        headers = {"authorization": f"Bearer {companion.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
            mcp.Client(streamable_http_client(companion.url, http_client=http), mode="auto") as client,
        ):
            assert len((await client.list_tools()).tools) == 2


@pytest.mark.requirement("GEM-039", "GEM-043", "GEM-046", "GEM-047")
async def test_the_first_context_comes_with_the_stream(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion:
        await companion.editor.open_file(str(file), _at(1, 2, 1, 2))
        async with attached_agent(companion.url, companion.token) as agent:
            (context,) = agent.named("ide/contextUpdate")
    (entry,) = context["workspaceState"]["openFiles"]
    assert isinstance(entry.pop("timestamp"), int)
    assert entry == {"path": str(file), "isActive": True, "cursor": {"line": 2, "character": 3}}


@pytest.mark.requirement("GEM-032", "GEM-034", "GEM-036", "GEM-035")
async def test_opening_focusing_and_closing_a_file_are_told(workspace: Path, file: Path) -> None:
    other = workspace / "other.py"
    other.write_text("", encoding="utf-8")
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        await companion.editor.open_file(str(file))
        await agent.sees(path=str(file), isActive=True)
        await companion.editor.open_file(str(other))
        await agent.sees(path=str(other), isActive=True)
        await companion.editor.open_file(str(file))
        context = await agent.sees(path=str(file), isActive=True)
        assert [entry["path"] for entry in context["workspaceState"]["openFiles"]] == [str(file), str(other)]
        await companion.editor.close_file(str(file))
        context = await agent.sees(path=str(other), isActive=True)
        assert len(context["workspaceState"]["openFiles"]) == 1


@pytest.mark.requirement("GEM-037", "GEM-038", "GEM-056", "GEM-057")
async def test_cursor_and_selection_are_told_for_the_active_file_alone(workspace: Path, file: Path) -> None:
    other = workspace / "other.py"
    other.write_text("abc\n", encoding="utf-8")
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        await companion.editor.open_file(str(other), _at(0, 0, 0, 2))
        await agent.sees(path=str(other), selectedText="ab")
        await companion.editor.open_file(str(file), _at(0, 6, 0, 6))
        await agent.sees(path=str(file), cursor={"line": 1, "character": 7})
        await companion.editor.open_file(str(file), _at(0, 0, 1, 3))
        context = await agent.sees(selectedText="one = 1\ntwo", cursor={"line": 2, "character": 4})
    second = context["workspaceState"]["openFiles"][1]
    assert set(second) == {"path", "timestamp"}


@pytest.mark.requirement("GEM-033")
async def test_a_burst_of_changes_is_one_notification(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        for character in range(6):
            await companion.editor.open_file(str(file), _at(0, character, 0, character))
        await agent.sees(path=str(file), cursor={"line": 1, "character": 6})
        assert len(agent.named("ide/contextUpdate")) == 2


@pytest.mark.requirement("GEM-032", "GEM-048")
async def test_the_context_goes_to_every_attached_agent(workspace: Path, file: Path) -> None:
    async with (
        running_companion(workspace) as companion,
        attached_agent(companion.url, companion.token) as one,
        attached_agent(companion.url, companion.token) as two,
    ):
        await companion.editor.open_file(str(file), _at(0, 0, 0, 3))
        await one.sees(path=str(file), selectedText="one")
        await two.sees(path=str(file), selectedText="one")


@pytest.mark.requirement("GEM-031", "GEM-040", "GEM-041", "GEM-049")
async def test_a_deleted_file_is_not_told_and_no_files_are_an_empty_list(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        assert agent.named("ide/contextUpdate") == [{"workspaceState": {"openFiles": []}}]
        other = workspace / "other.py"
        other.touch()
        await companion.editor.open_file(str(other))
        await agent.sees(path=str(other))
        other.unlink()
        await companion.editor.open_file(str(file))
        context = await agent.sees(path=str(file))
        assert [entry["path"] for entry in context["workspaceState"]["openFiles"]] == [str(file)]


@pytest.mark.requirement("GEM-044", "GEM-045", "GEM-053", "GEM-060")
async def test_the_ten_last_focused_files_are_sent_newest_first_with_16_kib_of_selection(
    workspace: Path,
) -> None:
    paths = [workspace / f"{number}.txt" for number in range(12)]
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        started = time.time()
        for path in paths:
            path.write_text("x" * 20_000, encoding="utf-8")
            await companion.editor.open_file(str(path), _at(0, 0, 0, 20_000))
        context = await agent.sees(path=str(paths[-1]), isActive=True)
        files = context["workspaceState"]["openFiles"]
        assert [entry["path"] for entry in files] == [str(path) for path in reversed(paths[2:])]
        times = [entry["timestamp"] for entry in files]
        assert times == sorted(times, reverse=True)
        assert len(set(times)) == 10
        assert all(started - 1 <= when / 1000 <= time.time() + 1 for when in times)
        assert len(files[0]["selectedText"]) == 16384
        assert files[0]["selectedText"].endswith("x... [TRUNCATED]")


async def _view(companion_editor: object) -> str:
    from isthmus.editors.headless import HeadlessEditor

    assert isinstance(companion_editor, HeadlessEditor)
    views = await eventually_async(lambda: companion_editor.open_reviews, what="a diff view")
    return views[0].id


@pytest.mark.requirement("GEM-061", "GEM-067", "GEM-068", "GEM-070")
async def test_open_diff_answers_at_once_and_the_outcome_follows(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        result = await agent.open_diff(file, "one = 1\n")
        assert result.content == []
        assert not result.is_error
        assert agent.named("ide/diffAccepted") == []
        companion.editor.accept_diff(await _view(companion.editor))
        assert await agent.notified("ide/diffAccepted") == {"filePath": str(file), "content": "one = 1\n"}


@pytest.mark.requirement("GEM-078", "GEM-079", "GEM-080", "GEM-081")
async def test_accepting_sends_the_text_as_the_user_left_it_and_writes_nothing(workspace: Path, file: Path) -> None:
    before = file.read_bytes()
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        await agent.open_diff(file, "one = 2\n")
        view = await _view(companion.editor)
        companion.editor.edit_diff(view, "one = 3\r\nno newline")
        companion.editor.accept_diff(view)
        assert await agent.notified("ide/diffAccepted") == {"filePath": str(file), "content": "one = 3\r\nno newline"}
    assert file.read_bytes() == before


@pytest.mark.requirement("GEM-082", "GEM-083")
async def test_closing_the_view_without_accepting_is_a_rejection(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        await agent.open_diff(file, "one = 2\n")
        companion.editor.reject_diff(await _view(companion.editor))
        assert await agent.notified("ide/diffRejected") == {"filePath": str(file)}
        assert agent.named("ide/diffAccepted") == []


@pytest.mark.requirement("GEM-072", "GEM-075", "GEM-076")
async def test_close_diff_returns_the_final_content_as_the_document_says(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        await agent.open_diff(file, "one = 2\n")
        companion.editor.edit_diff(await _view(companion.editor), "one = 4\n")
        result = await agent.close_diff(file)
        assert [block.model_dump(include={"type", "text"}) for block in result.content] == [
            {"type": "text", "text": "one = 4\n"}
        ]
        assert companion.editor.open_reviews == ()
        assert agent.named("ide/diffRejected") == []


@pytest.mark.parametrize(
    ("name", "more"), [(REAL_CLIENT, {}), ("stdio-client", {}), ("other", {"suppressNotification": True})]
)
@pytest.mark.requirement("GEM-076")
async def test_close_diff_returns_json_to_real_clients(
    workspace: Path, file: Path, name: str, more: dict[str, bool]
) -> None:
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token, name) as agent:
        await agent.open_diff(file, "é\n")
        result = await agent.close_diff(file, **more)
        (block,) = result.model_dump()["content"]
        assert json.loads(block["text"]) == {"content": "é\n"}
        nothing = await agent.close_diff(file, **more)
        assert json.loads(nothing.model_dump()["content"][0]["text"]) == {}


@pytest.mark.requirement("GEM-077", "GEM-073", "GEM-074")
async def test_close_diff_of_what_is_not_open_is_an_error_result(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        result = await agent.close_diff(file)
        assert result.is_error
        assert str(file) in result.model_dump()["content"][0]["text"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"newContent": ""}, "filePath"),
        ({"filePath": 3, "newContent": ""}, "filePath"),
        ({"filePath": "relative.py", "newContent": ""}, "absolute"),
        ({"filePath": "/a\0b", "newContent": ""}, "filePath"),
        ({"filePath": "/a.py"}, "newContent"),
        ({"filePath": "/a.py", "newContent": None}, "newContent"),
        ({"filePath": "/", "newContent": ""}, "directory"),
        ({"filePath": "/dev/zero", "newContent": ""}, "not a regular file"),
        ({"filePath": "/" + "y" * 300, "newContent": ""}, "too long"),
    ],
)
@pytest.mark.requirement("GEM-064", "GEM-065", "GEM-066", "GEM-069")
async def test_open_diff_with_wrong_arguments_is_an_error_result_that_names_them(
    workspace: Path, arguments: dict[str, object], expected: str
) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        response = await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
        assert response["result"]["isError"] is True
        (block,) = response["result"]["content"]
        assert block["type"] == "text"
        assert expected in block["text"]
        assert companion.editor.open_reviews == ()


@pytest.mark.requirement("GEM-078")
async def test_an_accepted_empty_text_is_a_rejection_for_clients_that_write_proposals(
    workspace: Path, file: Path
) -> None:
    async with (
        running_companion(workspace) as companion,
        attached_agent(companion.url, companion.token, REAL_CLIENT) as real,
        attached_agent(companion.url, companion.token) as other,
    ):
        for agent, method in ((real, "ide/diffRejected"), (other, "ide/diffAccepted")):
            await agent.open_diff(file, "one = 2\n")
            view = await _view(companion.editor)
            companion.editor.edit_diff(view, "")
            companion.editor.accept_diff(view)
            await agent.notified(method)
        assert other.named("ide/diffAccepted") == [{"filePath": str(file), "content": ""}]
        assert str(file) in await eventually_async(lambda: "".join(companion.editor.messages), what="a message")


@pytest.mark.requirement("GEM-078")
async def test_a_proposal_to_empty_a_file_can_be_accepted_by_every_client(workspace: Path, file: Path) -> None:
    async with (
        running_companion(workspace) as companion,
        attached_agent(companion.url, companion.token, REAL_CLIENT) as agent,
    ):
        await agent.open_diff(file, "")
        companion.editor.accept_diff(await _view(companion.editor))
        assert await agent.notified("ide/diffAccepted") == {"filePath": str(file), "content": ""}


@pytest.mark.requirement("GEM-070")
async def test_a_decision_goes_only_to_the_agent_that_asked(workspace: Path, file: Path) -> None:
    async with (
        running_companion(workspace) as companion,
        attached_agent(companion.url, companion.token) as one,
        attached_agent(companion.url, companion.token) as two,
    ):
        await one.open_diff(file, "one = 2\n")
        companion.editor.accept_diff(await _view(companion.editor))
        await one.notified("ide/diffAccepted")
        await companion.editor.open_file(str(file))
        await two.sees(path=str(file))
        assert two.named("ide/diffAccepted") == []


@pytest.mark.requirement("GEM-063", "GEM-070")
async def test_a_second_proposal_for_the_same_file_takes_the_place_of_the_first(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        await agent.open_diff(file, "first\n")
        first = await _view(companion.editor)
        await agent.open_diff(file, "second\n")
        (review,) = companion.editor.open_reviews
        assert review.id != first
        companion.editor.accept_diff(review.id)
        assert await agent.notified("ide/diffAccepted") == {"filePath": str(file), "content": "second\n"}
        assert agent.named("ide/diffRejected") == []


@pytest.mark.requirement("GEM-070")
async def test_a_decision_reaches_an_agent_that_had_lost_its_stream(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            last, _ = await stream.until("ide/contextUpdate")
        await _open_diff(agent, file)
        companion.editor.accept_diff(await _view(companion.editor))
        async with agent.stream(last) as stream:
            seen, message = await stream.until("ide/diffAccepted")
            assert message["params"] == {"filePath": str(file), "content": "new\n"}
        async with agent.stream(seen) as stream:
            _, message = await stream.next()
            assert message["method"] == "ide/contextUpdate"
            await _open_diff(agent, file)
            companion.editor.reject_diff(await _view(companion.editor))
            _, message = await stream.next()
            assert message["method"] == "ide/diffRejected"


async def test_a_decision_that_was_not_heard_never_counts_for_a_later_proposal(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            last, _ = await stream.until("ide/contextUpdate")
        await _open_diff(agent, file)
        companion.editor.edit_diff(await _view(companion.editor), "of the first\n")
        companion.editor.accept_diff(await _view(companion.editor))
        closed = await agent.request("tools/call", {"name": "closeDiff", "arguments": {"filePath": str(file)}})
        assert "of the first" in closed["result"]["content"][0]["text"]
        await _open_diff(agent, file)
        async with agent.stream(last) as stream:
            companion.editor.reject_diff(await _view(companion.editor))
            await stream.until("ide/diffRejected")
        async with agent.stream(last) as stream:
            _, message = await stream.next()
            assert message["method"] == "ide/diffRejected"


async def _open_diff(agent: BareAgent, file: Path) -> None:
    arguments = {"filePath": str(file), "newContent": "new\n"}
    response = await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
    assert response["result"] == {"content": []}


async def test_an_edit_outside_the_workspace_is_refused_unless_the_user_has_it_open(
    workspace: Path, tmp_path: Path
) -> None:
    outside, link = tmp_path / "outside.py", workspace / "link.py"
    outside.write_text("old\n", encoding="utf-8")
    link.symlink_to(outside)
    async with running_companion(workspace) as companion, attached_agent(companion.url, companion.token) as agent:
        for path in (outside, link, tmp_path / "new.py", workspace / ".." / "outside.py"):
            refused = await agent.open_diff(path, "new\n")
            assert refused.is_error
            assert "is outside the workspace" in str(refused.content)
        assert companion.editor.open_reviews == ()
        await companion.editor.open_file(str(outside))
        assert not (await agent.open_diff(outside, "new\n")).is_error
