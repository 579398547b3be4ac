import os
import sqlite3
import stat
import zlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.checkpoints import store as store_module
from isthmus.checkpoints.base import CheckpointError, CheckpointFor, RestoreAction
from isthmus.checkpoints.file_state import FileState, read_state
from isthmus.checkpoints.store import CheckpointStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[CheckpointStore]:
    opened = CheckpointStore(tmp_path / "data" / "checkpoints.sqlite")
    yield opened
    await opened.aclose()


def reason(workspace: Path, task: str = "t", context: str = "c") -> CheckpointFor:
    return CheckpointFor(context, task, "call", workspace, "the prompt")


async def edit(store: CheckpointStore, path: Path, data: bytes | None, *, task: str = "t", context: str = "c") -> str:
    """Make an edit as an agent does: checkpoint, change, note."""
    taken = await store.take(reason(path.parent, task, context), [path])
    if data is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    await store.edited(taken)
    return taken


async def test_restoring_brings_bytes_and_mode_back(store: CheckpointStore, workspace: Path) -> None:
    path = workspace / "run.sh"
    path.write_bytes(b"\xff one\r\n")
    path.chmod(0o755)
    taken = await edit(store, path, b"two\n")
    path.chmod(0o600)
    report = await store.restore(reason(workspace), taken)
    assert path.read_bytes() == b"\xff one\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert [(file.path, file.action) for file in report.done] == [(str(path), RestoreAction.WRITE)]


async def test_all_later_edits_of_the_session_go_back_and_earlier_ones_stay(
    store: CheckpointStore, workspace: Path
) -> None:
    a, b = workspace / "a", workspace / "b"
    await edit(store, a, b"a1")
    second = await edit(store, a, b"a2")
    await edit(store, b, b"b1", task="later")
    await edit(store, a, b"a3", task="later")
    await store.restore(reason(workspace), second)
    assert a.read_bytes() == b"a1"
    assert not b.exists()


async def test_a_new_file_and_the_folders_made_for_it_are_removed(store: CheckpointStore, workspace: Path) -> None:
    path = workspace / "src" / "deep" / "new.py"
    taken = await store.take(reason(workspace), [path])
    path.parent.mkdir(parents=True)
    path.write_bytes(b"new")
    await store.edited(taken)
    assert (await store.plan("c", taken)).files[0].action is RestoreAction.REMOVE
    await store.restore(reason(workspace), taken)
    assert not (workspace / "src").exists()


async def test_a_folder_that_holds_something_else_stays(store: CheckpointStore, workspace: Path) -> None:
    path = workspace / "src" / "new.py"
    taken = await edit_new(store, path)
    (path.parent / "mine.py").write_bytes(b"mine")
    await store.restore(reason(workspace), taken)
    assert (path.parent / "mine.py").read_bytes() == b"mine"


async def edit_new(store: CheckpointStore, path: Path) -> str:
    taken = await store.take(reason(path.parent.parent), [path])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"new")
    await store.edited(taken)
    return taken


async def test_a_deleted_file_comes_back(store: CheckpointStore, workspace: Path) -> None:
    path = workspace / "a"
    path.write_bytes(b"one")
    taken = await edit(store, path, None)
    await store.restore(reason(workspace), taken)
    assert path.read_bytes() == b"one"


async def test_what_somebody_else_wrote_since_is_said_and_can_be_had_back(
    store: CheckpointStore, workspace: Path
) -> None:
    path = workspace / "a"
    path.write_bytes(b"one")
    taken = await edit(store, path, b"two")
    path.write_bytes(b"two and mine")
    assert [file.changed_by_others for file in (await store.plan("c", taken)).files] == [True]
    report = await store.restore(reason(workspace), taken)
    assert path.read_bytes() == b"one"
    assert report.undo_id is not None
    await store.restore(reason(workspace), report.undo_id)
    assert path.read_bytes() == b"two and mine"


async def test_what_only_the_agent_wrote_is_not_said_to_be_changed(store: CheckpointStore, workspace: Path) -> None:
    path = workspace / "a"
    taken = await edit(store, path, b"one")
    await edit(store, path, b"two")
    assert [file.changed_by_others for file in (await store.plan("c", taken)).files] == [False]


async def test_files_that_are_as_they_were_are_not_touched(store: CheckpointStore, workspace: Path) -> None:
    path = workspace / "a"
    path.write_bytes(b"one")
    taken = await edit(store, path, b"two")
    path.write_bytes(b"one")
    report = await store.restore(reason(workspace), taken)
    assert (report.done, report.undo_id, report.problems) == ((), None, ())


async def test_another_sessions_checkpoint_is_not_there(store: CheckpointStore, workspace: Path) -> None:
    taken = await edit(store, workspace / "a", b"one", context="other")
    assert await store.list("c") == []
    with pytest.raises(CheckpointError, match="no checkpoint"):
        await store.plan("c", taken)


async def test_a_file_behind_a_folder_that_is_a_link_now_is_not_written(
    store: CheckpointStore, workspace: Path, tmp_path: Path
) -> None:
    folder = workspace / "src"
    folder.mkdir()
    (folder / "a").write_bytes(b"one")
    taken = await edit(store, folder / "a", b"two")
    elsewhere = tmp_path / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    report = await store.restore(reason(workspace), taken)
    assert (elsewhere / "a").read_bytes() == b"two"
    assert "link" in report.problems[0]


async def test_a_read_only_file_is_a_problem_and_the_others_are_restored(
    store: CheckpointStore, workspace: Path
) -> None:
    a, b = workspace / "a", workspace / "b"
    a.write_bytes(b"a")
    b.write_bytes(b"b")
    taken = await edit(store, a, b"a1")
    await edit(store, b, b"b1")
    a.chmod(0o444)
    report = await store.restore(reason(workspace), taken)
    assert (a.read_bytes(), b.read_bytes()) == (b"a1", b"b")
    assert "read-only" in report.problems[0]


async def test_equal_content_is_kept_once_and_the_store_is_private(
    store: CheckpointStore, workspace: Path, tmp_path: Path
) -> None:
    data = os.urandom(200_000)
    for name in ("a", "b", "c"):
        (workspace / name).write_bytes(data)
        await edit(store, workspace / name, b"")
    assert count(tmp_path, "contents") == 1
    for path in (tmp_path / "data").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def count(tmp_path: Path, table: str) -> int:
    connection = sqlite3.connect(tmp_path / "data" / "checkpoints.sqlite")
    try:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - a name of this file
    finally:
        connection.close()


async def test_deleting_a_task_removes_its_content_for_good(
    store: CheckpointStore, workspace: Path, tmp_path: Path
) -> None:
    a, b = workspace / "a", workspace / "b"
    secret = os.urandom(64).hex().encode()
    a.write_bytes(secret)
    b.write_bytes(b"kept")
    await edit(store, a, b"", task="gone")
    kept = await edit(store, b, b"", task="stays")
    await store.delete(["gone"])
    assert [info.checkpoint_id for info in await store.list("c")] == [kept]
    assert count(tmp_path, "contents") == 1
    await store.aclose()
    import zlib

    for path in (tmp_path / "data").iterdir():
        assert zlib.compress(secret, 1) not in path.read_bytes()


async def test_the_oldest_checkpoints_make_room(workspace: Path, tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "small" / "checkpoints.sqlite", maximum_total_bytes=250_000)
    path = workspace / "a"
    taken: list[str] = []
    for _ in range(4):
        path.write_bytes(os.urandom(100_000))
        taken.append(await edit(store, path, b""))
    assert [info.checkpoint_id for info in await store.list("c")] == taken[:1:-1]
    with pytest.raises(CheckpointError, match="dropped"):
        await store.restore(reason(workspace), taken[0])
    await store.aclose()


async def test_a_file_that_is_too_large_to_keep_is_said(store: CheckpointStore, workspace: Path) -> None:
    path = workspace / "a"
    path.touch()
    os.truncate(path, 20 * 1024 * 1024 + 1)
    taken = await edit(store, path, b"small")
    (file,) = (await store.plan("c", taken)).files
    assert file.action is RestoreAction.IMPOSSIBLE
    assert "more than 20971520 bytes" in (file.reason or "")
    assert (await store.restore(reason(workspace), taken)).problems
    assert path.read_bytes() == b"small"


async def test_a_store_that_is_no_database_is_a_clear_error(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints.sqlite").write_bytes(b"not a database, but long enough to be read as one " * 40)
    store = CheckpointStore(tmp_path / "checkpoints.sqlite")
    with pytest.raises(CheckpointError, match="cannot be used"):
        await store.take(reason(workspace), [workspace / "a"])


async def test_a_broken_store_that_was_moved_away_is_made_anew(workspace: Path, tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.sqlite"
    path.write_bytes(b"not a database, but long enough to be read as one " * 40)
    store = CheckpointStore(path)
    with pytest.raises(CheckpointError, match="Move that file away"):
        await store.list("c")
    path.rename(tmp_path / "broken")
    taken = await edit(store, workspace / "a", b"a1")
    assert [info.checkpoint_id for info in await store.list("c")] == [taken]
    await store.aclose()


async def test_a_file_that_was_edited_often_is_read_once_to_plan_its_way_back(
    store: CheckpointStore, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace / "a"
    path.write_bytes(b"before")
    first = await edit(store, path, b"0")
    for number in range(1, 10):
        await edit(store, path, str(number).encode())
    read: list[Path] = []

    def noted(path: Path) -> tuple[FileState, bytes | None]:
        read.append(path)
        return read_state(path)

    monkeypatch.setattr(store_module, "read_state", noted)
    plan = await store.plan("c", first)
    assert [(file.path, file.action, file.changed_by_others) for file in plan.files] == [
        (str(path), RestoreAction.WRITE, False)
    ]
    assert read == [path]


async def test_two_processes_may_use_one_store(store: CheckpointStore, workspace: Path, tmp_path: Path) -> None:
    other = CheckpointStore(tmp_path / "data" / "checkpoints.sqlite")
    path = workspace / "a"
    path.write_bytes(b"one")
    first = await edit(store, path, b"two")
    await edit(other, path, b"three")
    await other.restore(reason(workspace), first)
    assert path.read_bytes() == b"one"
    await other.aclose()


async def test_content_that_is_damaged_is_not_put_back(store: CheckpointStore, workspace: Path, tmp_path: Path) -> None:
    path = workspace / "a.txt"
    path.write_bytes(b"one\n")
    taken = await edit(store, path, b"two\n")
    with sqlite3.connect(tmp_path / "data" / "checkpoints.sqlite") as connection:
        connection.execute("UPDATE contents SET data = ?", (zlib.compress(b"something else\n"),))
    connection.close()
    report = await store.restore(reason(workspace), taken)
    assert (len(report.done), len(report.problems)) == (0, 1)
    assert path.read_bytes() == b"two\n"
