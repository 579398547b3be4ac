"""Worktrees of deleted sessions, with real git and a real journal."""

import os
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from isthmus.agent.session.session import Session
from isthmus.engine.port.retention import Retention
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.base import Journal, JournalError
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.parts.repositories.pruning import FAILURES, GRACE_SECONDS, UNKEPT_SECONDS, WorktreePruning
from isthmus.parts.repositories.served import ServedRepositories
from isthmus.worktrees.owners import FOLDER
from isthmus.worktrees.session_worktree import SessionWorktree
from support.git_repositories import SharedRepository
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

NAME = "a journal"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SharedRepository.make_template(tmp_path_factory.mktemp("template"), {"a": "a\n", ".gitignore": "*.log\n"})


@pytest.fixture
def shared(tmp_path: Path, template: Path) -> SharedRepository:
    return SharedRepository(tmp_path, template)


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncGenerator[Journal]:
    opened = await SqliteJournal.open(tmp_path / "journal.sqlite")
    await add(opened, "other", TaskState.COMPLETED)
    yield opened
    await opened.aclose()


async def add(journal: Journal, context: str, state: TaskState, user: str = "") -> None:
    """Add a task with the id of its session."""
    taken = await journal.create(NewTask(context, context, "/git:app", "Fix it", user), [Prompt("m", "x")], "me", 20)
    if state is not TaskState.WORKING:
        await journal.finish(taken.lease, [StateChange(state)], [])


def pruning(shared: SharedRepository, machine: str = "one", journal_name: str = NAME) -> WorktreePruning:
    """Return the pruning of a server that was started just now."""
    return WorktreePruning(shared.machine(machine), (shared.url(), shared.url("main")), journal_name)


async def worked(shared: SharedRepository, context: str, machine: str = "one", user: str = "") -> SessionWorktree:
    """Return the worktree in which a session has worked on a machine, with a checkpoint."""
    owner = pruning(shared).owner(user, context)
    opened = await shared.machine(machine).open(shared.url(), owner.session, owner)
    (opened.worktree.folder / "b").write_text(machine, "utf-8")
    (opened.worktree.folder / "b.log").write_text("ignored", "utf-8")
    await opened.worktree.checkpoint()
    age(opened.worktree, GRACE_SECONDS + 1)
    return opened.worktree


def age(worktree: SessionWorktree, seconds: float) -> None:
    """Let a worktree have been opened this long ago."""
    path = worktree.mirror.folder / FOLDER / f"{worktree.session}.json"
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def left_of(worktree: SessionWorktree) -> list[str]:
    """Return the paths on the machine that have the name of a session."""
    found = worktree.mirror.folder.rglob(f"*{worktree.session}*")
    return [str(path.relative_to(worktree.mirror.folder)) for path in found]


@pytest.mark.parametrize("user", ["", "alice"])
async def test_a_deleted_session_leaves_nothing_here_or_in_the_repository(
    shared: SharedRepository, journal: Journal, user: str
) -> None:
    await add(journal, "session-1", TaskState.COMPLETED, user)
    await add(journal, "session-2", TaskState.COMPLETED, user)
    gone, kept = [await worked(shared, context, user=user) for context in ("session-1", "session-2")]
    await gone.result("Work")
    await Retention(journal).delete(["session-1"])
    assert await pruning(shared).prune(journal) == [gone.session]
    assert left_of(gone) == []
    assert (kept.folder / "b").exists()
    assert list(shared.refs()) == [f"refs/isthmus/sessions/{kept.session}"]
    assert len(shared.refs("refs/heads/isthmus")) == 1
    assert await pruning(shared).prune(journal) == []


async def test_each_server_removes_its_worktree_of_a_session_that_another_deleted(
    shared: SharedRepository, journal: Journal
) -> None:
    await add(journal, "session-1", TaskState.COMPLETED)
    first, second = await worked(shared, "session-1", "one"), await worked(shared, "session-1", "two")
    await Retention(journal).delete(["session-1"])
    assert await pruning(shared, "one").prune(journal) == ["session-1"]
    assert shared.refs() == {}
    assert await pruning(shared, "two").prune(journal) == ["session-1"]
    assert left_of(first) == left_of(second) == []


@pytest.mark.parametrize("state", [TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.FAILED])
async def test_a_session_in_the_journal_keeps_its_worktree(
    shared: SharedRepository, journal: Journal, state: TaskState
) -> None:
    await add(journal, "session-1", state)
    worktree = await worked(shared, "session-1")
    age(worktree, UNKEPT_SECONDS * 10)
    assert await pruning(shared).prune(journal) == []
    assert (worktree.folder / "b").exists()
    assert shared.refs()


async def test_a_worktree_that_another_process_just_opened_stays(shared: SharedRepository, journal: Journal) -> None:
    worktree = await worked(shared, "session-1")
    age(worktree, GRACE_SECONDS - 30)
    assert await pruning(shared).prune(journal) == []
    age(worktree, GRACE_SECONDS + 30)
    assert await pruning(shared).prune(journal) == ["session-1"]


async def test_a_session_at_work_here_keeps_its_worktree_whatever_the_journal_says(
    shared: SharedRepository, journal: Journal
) -> None:
    worktree = await worked(shared, "session-1")
    here = pruning(shared)
    with here.in_use("session-1"):
        assert await here.prune(journal) == []
    age(worktree, 0)
    assert await here.prune(journal) == ["session-1"]  # at once: this process knows that it was in the journal


async def test_a_session_that_begins_again_during_its_removal_keeps_everything(
    shared: SharedRepository, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktree = await worked(shared, "session-1")
    asked = 0
    workspace_of = journal.workspace_of

    async def begins_again(context_id: str, user: str = "") -> str | None:
        nonlocal asked
        asked += 1
        if asked == 2:
            await add(journal, context_id, TaskState.WORKING)
        return await workspace_of(context_id, user)

    monkeypatch.setattr(journal, "workspace_of", begins_again)
    assert await pruning(shared).prune(journal) == []
    assert asked == 2
    assert (worktree.folder / "b").exists()
    assert shared.refs()
    assert [found.owner.context_id for found in await shared.machine("one").owned(shared.url())] == ["session-1"]


async def test_without_an_answer_of_the_journal_nothing_is_removed(
    shared: SharedRepository, journal: Journal, tmp_path: Path
) -> None:
    worktree = await worked(shared, "session-1")
    closed = await SqliteJournal.open(tmp_path / "closed.sqlite")
    await closed.aclose()
    with pytest.raises(JournalError):
        await pruning(shared).prune(closed)
    assert (worktree.folder / "b").exists()


async def test_worktrees_of_other_journals_and_of_unknown_owners_are_left_alone(
    shared: SharedRepository, journal: Journal, tmp_path: Path
) -> None:
    worktree = await worked(shared, "session-1")
    assert await pruning(shared, journal_name="another journal").prune(journal) == []
    empty = await SqliteJournal.open(tmp_path / "restored later.sqlite")
    assert await pruning(shared).prune(empty) == []
    await empty.aclose()
    owners = worktree.mirror.folder / FOLDER
    stated = (owners / "session-1.json").read_text("utf-8")
    for text in ("", "[]", "{}", stated.replace("session-1", "session-9"), "[" * 100_000):
        (owners / "session-1.json").write_text(text, "utf-8")
        age(worktree, UNKEPT_SECONDS * 2)
        assert await pruning(shared).prune(journal) == []
    (owners / "session-1.json").unlink()
    os.mkfifo(owners / "session-1.json")
    assert await pruning(shared).prune(journal) == []
    assert (worktree.folder / "b").exists()


async def test_files_that_no_checkpoint_has_stay_for_a_week(shared: SharedRepository, journal: Journal) -> None:
    worktree = await worked(shared, "session-1")
    (worktree.folder / "by hand").write_text("mine", "utf-8")
    age(worktree, UNKEPT_SECONDS - 60)
    assert await pruning(shared).prune(journal) == []
    assert shared.refs()
    age(worktree, UNKEPT_SECONDS + 60)
    assert await pruning(shared).prune(journal) == ["session-1"]
    assert left_of(worktree) == []


async def test_what_another_machine_pushed_meanwhile_stays_in_the_repository(
    shared: SharedRepository, journal: Journal
) -> None:
    worktree = await worked(shared, "session-1")

    async def goes_on_elsewhere() -> bool:
        other = (await shared.machine("two").open(shared.url(), "session-1")).worktree
        (other.folder / "b").write_text("later", "utf-8")
        await other.checkpoint()
        return True

    assert await shared.machine("one").remove(shared.url(), "session-1", goes_on_elsewhere)
    assert left_of(worktree) == []
    assert list(shared.refs()) == ["refs/isthmus/sessions/session-1"]


async def test_files_go_while_the_repository_is_away_and_its_refs_later(
    shared: SharedRepository, journal: Journal
) -> None:
    names = [f"session-{number}" for number in range(FAILURES)]
    worktrees = [await worked(shared, name) for name in names]
    here, away = pruning(shared), shared.bare.with_name("away")
    shared.bare.rename(away)
    assert await here.prune(journal) == []
    assert [worktree.folder.exists() for worktree in worktrees] == [False] * FAILURES
    away.rename(shared.bare)
    assert len(shared.refs()) == FAILURES
    assert await here.prune(journal) == names
    assert shared.refs() == {}
    assert [left_of(worktree) for worktree in worktrees] == [[]] * FAILURES


async def test_a_removal_that_was_broken_off_is_finished(shared: SharedRepository, journal: Journal) -> None:
    worktree = await worked(shared, "session-1")
    worktree.folder.rename(worktree.folder.with_name("killed"))
    assert await pruning(shared).prune(journal) == ["session-1"]
    assert left_of(worktree) == []
    assert shared.refs() == {}


async def test_a_deletion_by_this_server_removes_the_worktree_without_a_wait(
    shared: SharedRepository, journal: Journal
) -> None:
    served = ServedRepositories(shared.folder / "one", shared.environment, {"app": shared.url()}, NAME)
    await add(journal, "session-1", TaskState.COMPLETED)
    async with served.open(journal, "app", Session("session-1")) as worktree:
        folder = worktree.worktree.folder
    deleted: list[str] = []

    async def delete_files(task_ids: object) -> None:
        deleted.append(str(task_ids))

    looked_at_last = (await worked(shared, "session-2")).folder
    async with served.pruned(journal):
        await eventually_async(_is_gone(looked_at_last))
        assert folder.exists()
        await Retention(journal, served.deleting(delete_files)).delete(["session-1"])
        await eventually_async(_is_gone(folder))
    assert deleted == ["['session-1']"]


def _is_gone(folder: Path) -> Callable[[], bool]:
    return lambda: not folder.exists()
