import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from isthmus.checkpoints.base import CheckpointFor
from isthmus.checkpoints.store import CheckpointStore
from isthmus.cli.main import run
from isthmus.client import PromptMessage, PushTarget
from isthmus.events import AgentMessage, ArtifactPart, ArtifactUpdate, Prompt, StateChange, TaskState, event_from_json
from isthmus.internal_events import ModelReply
from isthmus.journal.port.pushes import PushRow
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.parts.files.task_files import TaskFiles
from support.agents import EchoAgent, WaitingAgent
from support.engines import engine_on
from support.turns import all_of

SAID = AgentMessage("m2", "It is fixed\x1b[31m now")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Make a data folder with a completed task, one that waits, and one whose process has ended."""
    folder = tmp_path / "data"
    asyncio.run(make_tasks(folder))
    return folder


async def make_tasks(folder: Path) -> None:
    journal = await SqliteJournal.open(folder / "journal.sqlite")
    for number, state in enumerate((TaskState.COMPLETED, TaskState.INPUT_REQUIRED, TaskState.WORKING)):
        task = NewTask(f"aa{number}-{state}", f"c{number}", "/work", f"Fix number {number}", "bob" if number else "")
        taken = await journal.create(task, [Prompt("m1", f"Fix number {number}")], "a:other:1:1", 0)
        await journal.append(taken.lease, [SAID])
        if state is TaskState.WORKING:
            await journal.append(taken.lease, [StateChange(state)])
        else:
            await journal.finish(taken.lease, [StateChange(state)], [])
    await journal.aclose()


def tasks(data: Path, *arguments: str) -> int:
    return run(["tasks", *arguments, "--data-dir", str(data)])


def listed(data: Path, capsys: pytest.CaptureFixture[str]) -> Sequence[str]:
    capsys.readouterr()
    assert tasks(data, "list", "--json") == 0
    return [task["id"] for task in json.loads(capsys.readouterr().out)]


def test_tasks_are_listed_newest_first_with_state_and_title(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tasks(data, "list") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["ID", "STATE", "CHANGED", "EVENTS", "USER", "TITLE"]
    assert [(line[1], line[3], line[4], line[-1]) for line in lines[1:]] == [
        ("working", "3", "bob", "2"),
        ("input-required", "3", "bob", "1"),
        ("completed", "3", "-", "0"),
    ]


def test_tasks_of_hosted_agents_are_listed_with_their_folder(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = data / "acp-agents" / "gemini"
    asyncio.run(make_tasks(folder))
    (data / "acp-agents" / "empty").mkdir()
    (data / "journal.sqlite").unlink()
    assert tasks(data, "list", "--state", "completed") == 0
    heading, _, line = capsys.readouterr().out.splitlines()
    assert heading == f"Hosted agent gemini, --data-dir {folder}:"
    assert line.split()[1] == "completed"
    assert tasks(data, "list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [task["data_dir"] for task in found] == [str(folder)] * 3
    assert tasks(folder, "show", found[-1]["id"]) == 0
    assert tasks(data, "list", "--state", "failed") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "No tasks."


def test_tasks_are_listed_by_state_and_user(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tasks(data, "list", "--json", "--user", "bob", "--state", "working", "--state", "completed") == 0
    (task,) = json.loads(capsys.readouterr().out)
    assert (task["state"], task["user"], task["events"], task["title"]) == ("working", "bob", 3, "Fix number 2")
    assert tasks(data, "list", "--state", "sleeping") == 42
    assert "expected one of submitted, working, input-required" in capsys.readouterr().err


def test_without_a_journal_there_are_no_tasks_and_none_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tasks(tmp_path / "none", "list") == 0
    assert capsys.readouterr().out == "No tasks.\n"
    assert tasks(tmp_path / "none", "show", "x") == 1
    assert "no tasks are stored in" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_task_is_shown_with_its_conversation_and_without_its_escapes(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tasks(data, "show", "aa0") == 0
    out = capsys.readouterr().out
    assert "State:     completed\n" in out
    assert "You:\nFix number 0\n" in out
    assert "Agent:\nIt is fixed" in out
    assert "\x1b" not in out
    assert tasks(data, "show", "aa0", "--json") == 0
    assert json.loads(capsys.readouterr().out)["history"][0] == {
        "role": "user",
        "message_id": "m1",
        "text": "Fix number 0",
    }


def test_an_id_that_is_none_or_several_is_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tasks(data, "show", "aa") == 1
    assert "several tasks begin with 'aa': aa0-completed, aa1-input-required" in capsys.readouterr().err
    assert tasks(data, "show", "%") == 1
    assert "there is no task '%'" in capsys.readouterr().err


def test_an_export_has_a_header_and_every_event_in_order(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "task.jsonl"
    assert tasks(data, "export", "aa1", "-o", str(file)) == 0
    header, *events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert (header["type"], header["format"], header["task"]["id"]) == ("isthmus.task", 1, "aa1-input-required")
    assert [event["seq"] for event in events] == [1, 2, 3]
    assert [event_from_json(event["event"]) for event in events] == [
        Prompt("m1", "Fix number 1"),
        SAID,
        StateChange(TaskState.INPUT_REQUIRED),
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    capsys.readouterr()
    assert tasks(data, "export", "aa1") == 0
    assert capsys.readouterr().out == file.read_text(encoding="utf-8")
    assert tasks(data, "export", "aa1", "-o", str(tmp_path / "no" / "file")) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_deleting_takes_the_bytes_the_outputs_and_the_checkpoints(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = TaskFiles(data)
    for name in ("aa0-completed", "aa1-input-required"):
        (files.outputs / name).mkdir(parents=True)
        (files.outputs / name / "call.txt").write_text("long output", encoding="utf-8")
    edited = tmp_path / "edited.txt"
    edited.write_text("what it was before", encoding="utf-8")
    asyncio.run(take_checkpoint(files, "aa0-completed", edited))
    assert tasks(data, "delete", "aa0") == 0
    assert capsys.readouterr().out == "Deleted aa0-completed.\n"
    assert listed(data, capsys) == ["aa2-working", "aa1-input-required"]
    assert [folder.name for folder in files.outputs.iterdir()] == ["aa1-input-required"]
    for file in data.glob("*.sqlite*"):
        assert b"Fix number 0" not in file.read_bytes()
        assert b"what it was before" not in file.read_bytes()


async def take_checkpoint(files: TaskFiles, task_id: str, path: Path) -> None:
    store = CheckpointStore(files.checkpoints)
    await store.take(CheckpointFor("c0", task_id, "call", path.parent), [path])
    await store.aclose()


def test_of_several_none_is_deleted_when_one_is_working_unless_forced(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tasks(data, "delete", "aa1", "aa2") == 1
    assert "still working: aa2-working. Nothing was deleted" in capsys.readouterr().err
    assert len(listed(data, capsys)) == 3
    assert tasks(data, "delete", "aa1", "aa2", "--force") == 0
    assert listed(data, capsys) == ["aa0-completed"]


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_task_that_another_process_runs_is_cancelled_there_before_it_is_deleted(tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, agent, lease_seconds=4) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await agent.started.wait()
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "isthmus", "tasks", "delete", "--force", turn.task_id, "--data-dir", str(tmp_path)),
            stdout=subprocess.PIPE,
        )
        out, _ = await asyncio.wait_for(program.communicate(), 60)
        assert out.decode() == f"Deleted {turn.task_id}.\n"
        assert agent.stopped.is_set()
        assert await engine.tasks() == []


def test_pruning_by_age_and_number_leaves_what_waits_or_works(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tasks(data, "prune", "--older-than", "1h") == 0
    assert "Deleted 0 tasks" in capsys.readouterr().out
    assert tasks(data, "prune", "--older-than", "0s", "--keep", "1") == 0
    assert "Deleted 0 tasks" in capsys.readouterr().out
    assert tasks(data, "prune", "--keep", "0", "--dry-run") == 0
    assert "aa0-comp" in capsys.readouterr().out
    assert tasks(data, "prune", "--keep", "0") == 0
    assert "Deleted 1 task (" in capsys.readouterr().out
    assert listed(data, capsys) == ["aa2-working", "aa1-input-required"]


def test_pruning_by_size_says_when_it_cannot_get_there(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tasks(data, "prune", "--max-size", "1GB") == 0
    assert "Deleted 0 tasks" in capsys.readouterr().out
    assert tasks(data, "prune", "--max-size", "1KB") == 0
    done = capsys.readouterr()
    assert "Deleted 1 task" in done.out
    assert "The remaining tasks work, wait for an answer" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say what to delete"),
        (["--older-than", "3"], "'3' is not an age"),
        (["--max-size", "x"], "'x' is not a size"),
        (["--max-size", "1MB", "--dry-run"], "--dry-run can be used only with"),
    ],
)
def test_a_limit_that_does_not_fit_is_bad_input(
    data: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tasks(data, "prune", *arguments) == 42
    assert message in capsys.readouterr().err


@pytest.mark.anyio
async def test_tasks_of_a_running_engine_are_listed_and_exported_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        turn = await engine.prompt(PromptMessage("say hello"))
        await all_of(turn)
        assert await asyncio.to_thread(tasks, tmp_path, "export", turn.task_id) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {event["event"]["type"] for event in lines[1:]} >= {Prompt.__name__, ModelReply.__name__}


def test_a_task_shows_what_became_of_its_push_notifications_without_their_secrets(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def give_up() -> None:
        journal = await SqliteJournal.open(data / "journal.sqlite")
        target = PushTarget("https://hooks.example:8443/secret?key=secret", "p1", "secret", "Bearer", "secret")
        row = PushRow("aa0-completed", target, "0.3", None, 1)
        await journal.pushes.add(row, 1)
        assert await journal.pushes.claim(row, "me")
        await journal.pushes.failed(row, "me", "the receiver answered 410", None)
        await journal.aclose()

    asyncio.run(give_up())
    assert tasks(data, "show", "aa0") == 0
    text = capsys.readouterr().out
    assert "https://hooks.example:8443, given-up, delivered up to event 1, 1 attempts failed: the receiver ans" in text
    assert "secret" not in text
    assert tasks(data, "show", "aa0", "--json") == 0
    (push,) = json.loads(capsys.readouterr().out)["push_notifications"]
    assert (push["id"], push["state"], push["delivered_seq"]) == ("p1", "given-up", 1)
    assert "secret" not in str(push)


def test_a_task_shows_its_artifacts_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"

    async def make() -> None:
        journal = await SqliteJournal.open(data / "journal.sqlite")
        task = NewTask("aa0", "c", "/work", "Report")
        taken = await journal.create(task, [Prompt("m1", "Report")], "a:other:1:1", 0)
        first = ArtifactUpdate("r", (ArtifactPart(text="all is\x1b[31m well"),), "Report", "of today")
        more = ArtifactUpdate("r", (ArtifactPart(data={"count": 3}),), append=True)
        image = ArtifactUpdate("i", (ArtifactPart(raw="AAAA", media_type="image/png", filename="a.png"),))
        await journal.finish(taken.lease, [first, more, image, StateChange(TaskState.COMPLETED)], [])
        await journal.aclose()

    asyncio.run(make())
    assert tasks(data, "show", "aa0") == 0
    shown = capsys.readouterr().out
    assert "Artifact Report (of today):\nall is" in shown
    assert '"count": 3' in shown
    assert "[a.png: image/png, 4 characters of base64" in shown
    assert "\x1b" not in shown
    assert tasks(data, "show", "aa0", "--json") == 0
    report, _ = json.loads(capsys.readouterr().out)["artifacts"]
    assert [sorted(part) for part in report["parts"]] == [["text"], ["data"]]
