import asyncio
import json
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from isthmus.cli.main import run
from isthmus.events import Prompt
from isthmus.journal.port.lease_owner import new_owner
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from support.whole_journals import fill

VERSION_1 = Path(__file__).parent.parent.parent / "contract" / "journals" / "version_1.sqlite"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a journal's file with everything in it, and a task of this process."""

    async def make(path: Path) -> None:
        journal = await SqliteJournal.open(path, agent=("Isthmus",))
        await fill(journal)
        await journal.create(NewTask("mine", "c", "/work", "Mine"), [Prompt("m", "Mine")], new_owner(), 60)
        await journal.aclose()

    path = tmp_path_factory.mktemp("whole") / "journal.sqlite"
    asyncio.run(make(path))
    return path


@pytest.fixture
def data(tmp_path: Path, whole: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(whole, folder / "journal.sqlite")
    return folder


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return the data folder of a journal of version 1."""
    folder = tmp_path / "old"
    folder.mkdir()
    shutil.copy(VERSION_1, folder / "journal.sqlite")
    return folder


def test_the_state_of_a_journal_is_shown_with_its_processes(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["journal", "status", "--data-dir", str(data)]) == 0
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines() if not line.startswith("  "))
    facts = {name: value.strip() for name, value in lines.items()}
    assert facts["Journal"] == str(data / "journal.sqlite")
    assert (facts["Version"], facts["Agent"], facts["Events"]) == ("12", "Isthmus", "22")
    assert facts["Tasks"] == ("9 (1 completed, 1 deleted, 1 failed, 1 input-required, 4 submitted, 1 working)")
    assert facts["Queue"].startswith("2, the first for ")
    assert (facts["Pushes"], facts["Processes"]) == ("1 (1 active)", "2")


def test_the_state_of_a_journal_is_json_too(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["journal", "status", "--json", "--data-dir", str(data)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["version"], found["newest_version"], found["queued"], found["pushes"]) == (12, 12, 2, {"active": 1})
    assert time.time() - 3600 < found["oldest_queued_since"] <= time.time()
    unknown, mine = sorted(found["processes"], key=lambda process: process["pid"] or 0)
    assert (unknown["owner"], unknown["alive"], unknown["tasks"]) == ("an-owner", None, 2)
    assert (mine["alive"], mine["tasks"]) == (True, 1)


def test_the_state_of_an_older_journal_is_shown_and_nothing_is_upgraded(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (old / "journal.sqlite").read_bytes()
    assert run(["journal", "status", "--data-dir", str(old)]) == 0
    out = capsys.readouterr().out
    assert "Version:   1; this program works with 12: isthmus journal migrate" in out
    assert "Queue:     none" in out
    assert (old / "journal.sqlite").read_bytes() == before


def test_an_older_journal_is_upgraded_once(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data-dir", str(old)]
    before = (old / "journal.sqlite").read_bytes()
    assert run(["journal", "migrate", "--check", *where]) == 2
    assert "has version 1; isthmus journal migrate upgrades it to version 12" in capsys.readouterr().out
    assert run(["journal", "verify", *where]) == 1
    assert "isthmus journal migrate" in capsys.readouterr().err
    assert (old / "journal.sqlite").read_bytes() == before
    assert run(["journal", "migrate", *where]) == 0
    assert "from version 1 to version 12" in capsys.readouterr().out
    assert run(["journal", "migrate", *where]) == run(["journal", "migrate", "--check", *where]) == 0
    assert capsys.readouterr().out.count("is up to date (version 12)") == 2
    assert run(["journal", "verify", *where]) == 0


@pytest.mark.parametrize("command", ["status", "migrate", "verify"])
def test_a_newer_journal_is_refused_and_left_alone(
    command: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(data / "journal.sqlite") as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    assert run(["journal", command, "--data-dir", str(data)]) == 1
    assert "newer Isthmus (journal version 99, this one knows 12)" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["status", "migrate", "verify"])
def test_without_a_journal_none_is_made(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["journal", command, "--data-dir", str(tmp_path / "none")]) == 1
    assert f"there is no journal at {tmp_path / 'none' / 'journal.sqlite'}" in capsys.readouterr().err
    (tmp_path / "notes").write_text("my notes, rather long so that they are not a header" * 50, encoding="utf-8")
    assert run(["journal", command, str(tmp_path / "notes")]) == 1
    assert "is not a readable journal" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["notes"]


def test_a_backup_is_made_and_verified(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backup = str(tmp_path / "backup.sqlite")
    assert run(["journal", "copy", str(data / "journal.sqlite"), backup]) == 0
    assert f"Copied 8 tasks with 22 events to {backup}." in capsys.readouterr().out
    assert run(["journal", "verify", backup]) == 0
    assert f"No problem found in {backup}: 9 tasks, " in capsys.readouterr().out
    assert run(["journal", "copy", str(data / "journal.sqlite"), backup]) == 1
    assert "exists already" in capsys.readouterr().err
    assert run(["journal", "copy", str(data), backup]) == 1
    assert f"name the journal's file, e.g. {data / 'journal.sqlite'}" in capsys.readouterr().err


def test_what_is_wrong_is_named_and_cannot_control_the_terminal(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(data / "journal.sqlite") as connection:
        connection.execute("UPDATE tasks SET id = 'x\x1b]0;owned\x07\n', state = 'y\x1b[2J' WHERE id = 'ended'")
        connection.execute('UPDATE events SET body = \'{"type":"Z\x1b[31m"}\' WHERE seq = 2')
    connection.close()
    assert run(["journal", "verify", "--data-dir", str(data)]) == 1
    out = capsys.readouterr().out
    assert "its state is 'y" in out
    assert "event 2 cannot be read" in out
    assert "problems found" in out
    assert not {"\x1b", "\x07"} & set(out)
    assert all(line.startswith(("task ", "1", "5", "6", "7", "8", "9")) for line in out.splitlines())
    assert run(["journal", "status", "--data-dir", str(data)]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "--journal", "postgresql://bob:s3cret@127.0.0.1:1/x"],
        ["verify", "postgresql://bob:s3cret@127.0.0.1:1/x?password=s3cret"],
        ["status", "postgresql://bob:s3cret@[127.0.0.1/x"],
        ["migrate", "postgresql://bob:s3cret@127.0.0.1:abc/x"],
        ["migrate", "mysql://bob:s3cret@127.0.0.1:1/x"],
        ["copy", "journal.sqlite", "postgresql://bob:s3cret@127.0.0.1:1/x"],
        ["copy", "postgresql://bob:s3cret@127.0.0.1:1/x", "copy.sqlite"],
    ],
)
def test_no_password_is_shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["journal", *arguments]) == 1
    found = capsys.readouterr()
    assert "isthmus: " in found.err
    assert "s3cret" not in found.out + found.err
