"""The Claude IDE protocol over a real socket: transcripts of Claude Code, and a strict client that imitates it."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from isthmus.ide.editor import Position, Range
from support.claude_cli import AUTHORIZATION, CallError, ClaudeCli, Edit, Lock, choose, claude_cli, locks
from support.companion import REAL_CLIENT, RunningCompanion, attached_agent, running_companion
from support.editor_deadlines import PATIENT_LIMITS
from support.waiting import eventually_async
from support.wire_transcript import play

pytestmark = pytest.mark.anyio

_TRANSCRIPTS = Path(__file__).parent / "transcripts" / "claude_ide"


@pytest.fixture
def file(workspace: Path) -> Path:
    (workspace / "a b.py").write_text("zero\n", encoding="utf-8")
    path = workspace / "a.py"
    path.write_text("one\ntwo\n", encoding="utf-8")
    return path


def _at(line: int, character: int, end_line: int, end_character: int) -> Range:
    return Range(Position(line, character), Position(end_line, end_character))


def _lock(folder: Path) -> Lock:
    (lock,) = [lock for lock in locks() if lock.holds(folder)]
    return lock


@asynccontextmanager
async def _bare(lock: Lock) -> AsyncGenerator[ClientConnection]:
    """Open a WebSocket as the CLI does, over which a test sends what it likes."""
    async with connect(
        f"ws://127.0.0.1:{lock.port}",
        additional_headers={AUTHORIZATION: str(lock.token)},
        subprotocols=[Subprotocol("mcp")],
        proxy=None,
        ping_interval=None,
        max_size=None,
    ) as connection:
        yield connection


@pytest.mark.requirement("CLD-015", "CLD-028", "CLD-073", "CLD-075")
@pytest.mark.parametrize("name", sorted(path.stem for path in _TRANSCRIPTS.glob("*.txt")))
async def test_what_the_real_cli_says_is_answered_as_it_expects(name: str, workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, _bare(_lock(workspace)) as connection:
        await play(_TRANSCRIPTS / f"{name}.txt", connection, companion.editor, workspace)
    assert file.read_text(encoding="utf-8") == "one\ntwo\n"


@pytest.mark.requirement("CLD-001", "CLD-016", "CLD-030", "CLD-012")
async def test_the_cli_connects_and_finds_the_tools_that_the_editor_has(workspace: Path) -> None:
    async with running_companion(workspace), claude_cli(workspace) as cli:
        assert cli.initialized["serverInfo"]["name"] == "isthmus-companion"
        assert [tool["name"] for tool in cli.tools] == [
            *("openFile", "openDiff", "getCurrentSelection", "getLatestSelection", "getOpenEditors"),
            *("getWorkspaceFolders", "getDiagnostics", "checkDocumentDirty", "saveDocument", "close_tab"),
            "closeAllDiffTabs",
        ]
        for tool in cli.tools:
            assert tool["inputSchema"]["additionalProperties"] is False
        assert json.loads(await cli.text("getWorkspaceFolders"))["rootPath"] == str(workspace)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01"])
async def test_a_known_protocol_version_is_echoed_and_for_others_the_latest_is_offered(
    workspace: Path, version: str
) -> None:
    async with running_companion(workspace), _bare(_lock(workspace)) as connection:
        params = {"protocolVersion": version}
        await connection.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
        agreed = json.loads(await connection.recv())["result"]["protocolVersion"]
        assert agreed == (version if version != "1999-01-01" else "2025-11-25")


@pytest.mark.parametrize(
    ("subprotocols", "chosen"), [(None, None), (["mcp"], "mcp"), (["other"], None), (["other", "mcp"], "mcp")]
)
async def test_the_subprotocol_is_echoed_and_not_required(
    workspace: Path, subprotocols: list[Subprotocol] | None, chosen: str | None
) -> None:
    async with running_companion(workspace):
        lock = _lock(workspace)
        headers = {AUTHORIZATION: str(lock.token)}
        address = f"ws://127.0.0.1:{lock.port}/any/path"
        async with connect(address, additional_headers=headers, subprotocols=subprotocols, proxy=None) as connection:
            assert connection.subprotocol == chosen
            assert connection.protocol.extensions == []


@pytest.mark.requirement("CLD-017", "CLD-018", "CLD-021", "CLD-022")
async def test_the_cli_is_told_of_the_selection_when_it_connects_and_whenever_it_changes(
    workspace: Path, file: Path
) -> None:
    async with running_companion(workspace) as companion:
        await companion.editor.open_file(str(file), _at(0, 0, 1, 3))
        async with claude_cli(workspace) as cli:
            await cli.selects(text="one\ntwo", filePath=str(file))
            await companion.editor.open_file(str(file), _at(1, 0, 1, 3))
            selection = await cli.selects(text="two")
            assert selection["selection"] == {
                "start": {"line": 1, "character": 0},
                "end": {"line": 1, "character": 3},
                "isEmpty": False,
            }
            await companion.editor.open_file(str(file), _at(1, 1, 1, 1))
            await cli.selects(text="")


@pytest.mark.requirement("CLD-019", "CLD-020", "CLD-023")
async def test_files_that_are_hidden_or_missing_are_never_named(workspace: Path, file: Path) -> None:
    secret = workspace / ".env"
    secret.write_text("KEY=1\n", encoding="utf-8")
    gone = workspace / "gone.py"
    gone.touch()
    async with running_companion(workspace) as companion, claude_cli(workspace) as cli:
        await companion.editor.open_file(str(secret), _at(0, 0, 0, 5))
        await companion.editor.open_file(str(gone))
        gone.unlink()
        companion.editor.mention(str(secret), 0, 0)
        companion.editor.mention(str(file), 1, 1)
        await companion.editor.open_file(str(file), _at(0, 0, 0, 3))
        await cli.selects(text="one", fileUrl=file.as_uri())
        assert await cli.mentioned() == {"filePath": str(file), "lineStart": 1, "lineEnd": 1}
        named = {params["filePath"] for params in (*cli.told("selection_changed"), *cli.told("at_mentioned"))}
        # It may be sent in the moment that it existed.
        assert named - {str(gone)} == {str(file)}


@pytest.mark.requirement("CLD-024", "CLD-025", "CLD-026", "CLD-027")
async def test_a_mention_that_nobody_heard_waits_for_the_next_cli(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion:
        companion.editor.mention(str(file), 0, 1)
        async with claude_cli(workspace) as cli, claude_cli(workspace) as second:
            assert await cli.mentioned() == {"filePath": str(file), "lineStart": 0, "lineEnd": 1}
            companion.editor.mention(str(file))
            assert await second.mentioned() == {"filePath": str(file)}  # it came last
            await cli.call("closeAllDiffTabs", {})  # the user is back at the first one, which begins a turn
            companion.editor.mention(str(file), 2, 2)
            assert await cli.mentioned(2) == {"filePath": str(file), "lineStart": 2, "lineEnd": 2}
            assert (len(cli.told("at_mentioned")), len(second.told("at_mentioned"))) == (2, 1)
        async with claude_cli(workspace) as late:
            await companion.editor.open_file(str(file), _at(0, 0, 0, 3))
            await late.selects(text="one")
            companion.editor.mention(str(file), 1, 1)
            await late.mentioned()
            assert len(late.told("at_mentioned")) == 1


@pytest.mark.requirement("CLD-040", "CLD-045", "CLD-046", "CLD-074")
async def test_an_edit_waits_for_the_user_while_other_calls_are_answered(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, claude_cli(workspace) as cli:
        assert await cli.begin_turn() == 0
        editing = asyncio.create_task(cli.edit(file, "one\nthree\n"))
        review = (await eventually_async(lambda: companion.editor.open_reviews, what="a review"))[0]
        assert review.title == "Claude Code"
        assert json.loads(await cli.text("getDiagnostics")) == []
        companion.editor.edit_diff(review.id, "one\r\nmine")
        companion.editor.accept_diff(review.id)
        assert await editing == Edit("written", "one\r\nmine", is_modified=True)
        assert file.read_bytes() == b"one\r\nmine"
        editing = asyncio.create_task(cli.edit(file, "again\n"))
        review = (await eventually_async(lambda: companion.editor.open_reviews, what="a review"))[0]
        companion.editor.reject_diff(review.id)
        assert await editing == Edit("rejected")
        assert file.read_bytes() == b"one\r\nmine"


async def test_an_edit_that_is_answered_in_the_terminal_closes_its_view(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, claude_cli(workspace) as cli:
        for answer, outcome in ((True, Edit("written", "new\n")), (False, Edit("declined"))):
            terminal: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            editing = asyncio.create_task(cli.edit(file, "new\n", terminal))
            await eventually_async(lambda: companion.editor.open_reviews, what="a review")
            terminal.set_result(answer)
            assert await editing == outcome
            assert companion.editor.open_reviews == ()


async def test_answers_in_both_places_at_once_end_in_one_of_them(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, claude_cli(workspace) as cli:
        terminal: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        editing = asyncio.create_task(cli.edit(file, "proposed\n", terminal))
        review = (await eventually_async(lambda: companion.editor.open_reviews, what="a review"))[0]
        companion.editor.edit_diff(review.id, "changed\n")
        companion.editor.accept_diff(review.id)
        terminal.set_result(True)
        edit = await editing
        assert edit.outcome == "written"
        assert file.read_text(encoding="utf-8") == edit.text
        assert companion.editor.open_reviews == ()


@pytest.mark.requirement("CLD-066", "CLD-067")
async def test_a_turn_closes_the_diffs_of_its_own_client_and_no_others(workspace: Path, file: Path) -> None:
    other = workspace / "a b.py"
    async with (
        running_companion(workspace) as companion,
        claude_cli(workspace) as cli,
        claude_cli(workspace) as second,
    ):
        editing = [asyncio.create_task(cli.edit(file, "1\n")), asyncio.create_task(second.edit(other, "2\n"))]
        await eventually_async(lambda: len(companion.editor.open_reviews) == 2, what="two reviews")
        assert await cli.begin_turn() == 1
        assert await editing[0] == Edit("rejected")
        (left,) = companion.editor.open_reviews
        companion.editor.accept_diff(left.id)
        assert await editing[1] == Edit("written", "2\n")


@pytest.mark.requirement("CLD-002", "CLD-003", "CLD-078", "CLD-081")
async def test_the_lock_file_names_a_port_of_the_range_on_loopback_alone(workspace: Path) -> None:
    async with running_companion(workspace) as companion:
        lock = _lock(workspace)
        assert 10_000 <= lock.port <= 65_535
        path = Path(os.environ["HOME"]) / ".claude" / "ide" / f"{lock.port}.lock"
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.2", lock.port)
        await companion.end()
        assert not path.exists()


@pytest.mark.requirement("CLD-004", "CLD-005", "CLD-006", "CLD-007")
async def test_the_lock_file_names_process_folders_and_editor(workspace: Path) -> None:
    async with running_companion(workspace):
        path = Path(os.environ["HOME"]) / ".claude" / "ide" / f"{_lock(workspace).port}.lock"
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content.pop("authToken")
        assert content == {
            "pid": os.getpid(),
            "workspaceFolders": [str(workspace)],
            "ideName": "Isthmus (headless)",
            "transport": "ws",
            "runningInWindows": False,
        }


@pytest.mark.requirement("CLD-008", "CLD-079")
async def test_each_start_has_a_token_of_its_own(workspace: Path) -> None:
    tokens: set[str | None] = set()
    for _ in range(2):
        async with running_companion(workspace, fresh=True):
            tokens.add(_lock(workspace).token)
    assert len(tokens) == 2
    assert all(token is not None and len(token) == 36 for token in tokens)


async def test_a_lock_file_that_somebody_removed_is_made_again(workspace: Path) -> None:
    async with running_companion(workspace, limits=replace(PATIENT_LIMITS, housekeeping_seconds=0.05)):
        lock = _lock(workspace)
        path = Path(os.environ["HOME"]) / ".claude" / "ide" / f"{lock.port}.lock"
        path.unlink()
        await eventually_async(path.exists, what="the lock file")
        assert _lock(workspace) == lock


@pytest.mark.requirement("CLD-009", "CLD-010", "CLD-011")
async def test_a_terminal_of_the_companion_leads_to_its_port_wherever_it_is(workspace: Path, tmp_path: Path) -> None:
    async with running_companion(workspace) as companion:
        lock = _lock(workspace)
        variables = companion.ready.variables
        assert variables["CLAUDE_CODE_SSE_PORT"] == str(lock.port)
        assert variables["ENABLE_IDE_INTEGRATION"] == "true"
        assert variables["FORCE_CODE_TERMINAL"] == "true"
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        assert choose(elsewhere) is None
        async with claude_cli(elsewhere, {**os.environ, **variables}) as cli:
            assert cli.lock == lock


async def test_an_agent_of_each_protocol_sees_the_same_and_gets_only_its_own_answers(
    workspace: Path, file: Path
) -> None:
    other = workspace / "a b.py"
    async with (
        running_companion(workspace) as companion,
        claude_cli(workspace) as claude,
        attached_agent(companion.url, companion.token, REAL_CLIENT) as gemini,
    ):
        await companion.editor.open_file(str(file), _at(0, 0, 0, 3))
        await claude.selects(text="one", filePath=str(file))
        await gemini.sees(path=str(file), selectedText="one")
        editing = asyncio.create_task(claude.edit(file, "1\n"))
        await eventually_async(lambda: len(companion.editor.open_reviews) == 1, what="the review of one")
        await gemini.open_diff(other, "2\n")
        await eventually_async(lambda: len(companion.editor.open_reviews) == 2, what="the review of both")
        first, second = companion.editor.open_reviews
        assert (first.title, second.title) == ("Claude Code", "Gemini CLI")
        assert await claude.begin_turn() == 1
        assert await editing == Edit("rejected")
        assert companion.editor.open_reviews == (second,)
        companion.editor.accept_diff(second.id)
        accepted = await gemini.notified("ide/diffAccepted")
        assert accepted == {"filePath": str(other), "content": "2\n"}
        assert {message["method"] for message in claude.received} == {"selection_changed"}


async def test_edits_of_one_file_by_two_agents_are_reviewed_one_after_the_other(workspace: Path, file: Path) -> None:
    async with (
        running_companion(workspace) as companion,
        attached_agent(companion.url, companion.token, REAL_CLIENT) as gemini,
        claude_cli(workspace) as claude,
    ):
        await gemini.open_diff(file, "gemini's\n")
        (first,) = companion.editor.open_reviews
        editing = asyncio.create_task(claude.edit(file, "claude's\n"))
        assert json.loads(await claude.text("getDiagnostics")) == []
        assert companion.editor.open_reviews == (first,)
        companion.editor.reject_diff(first.id)
        await gemini.notified("ide/diffRejected")
        (second,) = await eventually_async(lambda: companion.editor.open_reviews, what="the review of the other")
        assert second.title == "Claude Code"
        companion.editor.accept_diff(second.id)
        assert await editing == Edit("written", "claude's\n")
        assert file.read_text(encoding="utf-8") == "claude's\n"


async def _pending(companion: RunningCompanion, cli: ClaudeCli, file: Path) -> "asyncio.Task[Edit]":
    """Start an edit that waits in both places; the terminal's answer comes only from the test."""
    editing = asyncio.create_task(cli.edit(file, "proposed\n"))
    await eventually_async(lambda: companion.editor.open_reviews, what="a review")
    return editing


async def test_the_views_of_a_client_that_vanishes_are_closed(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion:
        for leave in ("drop", "close"):
            async with claude_cli(workspace) as cli:
                editing = await _pending(companion, cli, file)
                if leave == "drop":
                    cli.drop()
                else:
                    await cli.close()
                await eventually_async(lambda: not companion.editor.open_reviews, what="no review")
                editing.cancel()


async def test_a_companion_that_stops_answers_what_waits_and_goes_away(workspace: Path, file: Path) -> None:
    async with running_companion(workspace) as companion, claude_cli(workspace) as cli:
        editing = await _pending(companion, cli, file)
        companion.host.stop()
        assert await editing == Edit("rejected")
        assert await cli.lost() == 1001
        with pytest.raises(CallError, match="Connection closed"):
            await cli.text("getWorkspaceFolders")
