"""Commands tried in a copy of their folder, in the real sandbox: nothing changes but what was shown."""

import asyncio
import os
import subprocess
import tomllib
from pathlib import Path

import psutil
import pytest

from isthmus.agent.approval.policy import Allow, Policy, decide
from isthmus.agent.approval.tried_lines import may_be_tried
from isthmus.development_tool import ExecuteDetails
from isthmus.sandbox.overlay import find_overlays
from isthmus.tools.port.base import Approved, ToolKind, ToolSucceeded
from isthmus.tools.shell.trials.archive import unpacked
from isthmus.tools.shell.trials.copying import CopyLimits
from isthmus.tools.shell.trials.places import new_place, remove
from support.command_trials import TriedWorkspace
from support.extended import first_of
from support.programs import require, unavailable
from support.tool_calls import running
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

LINES: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("tried_lines.toml").read_text(encoding="utf-8")
)
AT_ONCE = 4
"""Number of lines that are tried at the same time."""
SURVIVOR = "31536777"
"""Seconds that a process which outlives its line would sleep."""


async def tried(command: str, place: TriedWorkspace) -> tuple[str, str]:
    """Return what a line printed in a copy, and the text of its question."""
    details = await place.shell().try_out({"command": command}, place.context())
    assert isinstance(details, ExecuteDetails)
    assert details.trial is not None
    if not details.trial.id:
        return "", details.trial.changes
    data = (place.context().output_folder / f"trial-{details.trial.id}.zip").read_bytes()
    return unpacked(data, details.trial.id).shown, details.trial.changes


async def fate(command: str, place: TriedWorkspace) -> tuple[str, str]:
    """Return what becomes of a line, and what is wrong with it; the workspace is changed as if the user agreed."""
    before = place.states()
    if not may_be_tried(command, place.root, place.context().workspace):
        return "at_once", ""
    shell, context = place.shell(), place.context()
    details = await shell.try_out({"command": command}, context)
    assert isinstance(details, ExecuteDetails)
    assert details.trial is not None
    problem = "" if place.states() == before else "changed by the trial alone; "
    problem += "left a copy; " if any((place.data / "trials").iterdir()) else ""
    if not details.trial.id:
        return "plain", problem
    kept = unpacked((context.output_folder / f"trial-{details.trial.id}.zip").read_bytes(), details.trial.id)
    problem += "shows a secret; " if "of-the-user" in kept.shown + details.trial.changes else ""
    result = await shell.run({"command": command}, running(context, Approved(details)))
    problem += "" if isinstance(result, ToolSucceeded) else f"not applied: {result}; "
    after = place.states()
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    applied = {f"workspace/{change.path}" for change in kept.changes}
    problem += f"changed unseen: {sorted(changed - applied)}; " if changed - applied else ""
    named = {path for path in changed if f" {path.removeprefix('workspace/')}" in details.trial.changes}
    built = {path for path in changed - named if not path.startswith(("workspace/build", "workspace/dist"))}
    built = {path for path in built if not path.endswith(".log")}
    problem += f"changed unasked: {sorted(built)}; " if built else ""
    return "shown" if details.trial.changes else "unasked", problem


@pytest.mark.parametrize("kind", first_of(["copy", "overlay"]))
async def test_each_line_changes_what_was_shown_and_nothing_else(tmp_path: Path, kind: str) -> None:
    limits = CopyLimits() if kind == "copy" else CopyLimits(overlay_from=0)
    if kind == "overlay" and find_overlays(os.environ, tmp_path) is None:
        unavailable("overlays do not work on this machine")
    first, slots = TriedWorkspace(tmp_path / "first", limits), asyncio.Semaphore(AT_ONCE)
    lines = {line: fate for fates in LINES.values() for fate, lines in fates.items() for line in lines}
    assert [sum(map(len, fates.values())) >= 60 for fates in LINES.values()] == [True, True]
    wanted = {line: fate for number, (line, fate) in enumerate(lines.items()) if kind == "copy" or number % 5 == 0}

    async def judged(number: int, line: str) -> tuple[str, str, str]:
        async with slots:
            return line, *await fate(line, await asyncio.to_thread(first.another, str(number)))

    found = await asyncio.gather(*(judged(number, line) for number, line in enumerate(wanted)))
    assert {line: problem for line, _, problem in found if problem} == {}
    differing = {line: fate for line, fate, _ in found if fate != wanted[line]}
    # What an overlay closes cannot be written, so that such a line fails where it would be asked about.
    assert differing == {} if kind == "copy" else set(differing.values()) <= {"unasked"}
    left = [each for each in psutil.process_iter(["cmdline"]) if SURVIVOR in (each.info["cmdline"] or ())]
    assert left == []
    unasked = Policy()
    before = [decide(unasked, "run_shell_command", ToolKind.EXECUTE, {"command": line}) for line in LINES["everyday"]]
    assert Allow() not in before


async def test_a_copy_has_the_history_but_no_logins_and_no_secrets_beside_packages(tmp_path: Path) -> None:
    place = TriedWorkspace(tmp_path / "one")
    with (place.root / ".git" / "config").open("a") as file:
        file.write('[remote "origin"]\n\turl = https://user:of-the-user@example.org/x\n[core]\n\tpager = evil\n')
    (place.root / ".venv").mkdir()
    for name in (".env", "known.py"):
        (place.root / ".venv" / name).write_text("of-the-user" if name == ".env" else "known")
    (place.home / ".gitconfig").write_text("[credential]\n\thelper = of-the-user\n")
    shown, _ = await tried("cat .git/config ~/.gitconfig .venv/* .venv/.env; git log --format=%s; git remote -v", place)
    assert "of-the-user" not in shown
    assert "evil" not in shown
    assert "known" in shown
    assert "\na\n" in f"{shown}\n"
    assert "touch: " in (await tried("touch .venv/made .git/made", place))[0]


async def test_a_command_has_an_empty_home_and_temporary_folder_of_its_own(tmp_path: Path) -> None:
    place = TriedWorkspace(tmp_path / "one")
    line = "set -e; mktemp; echo x > $HOME/x; echo y > $TMPDIR/y; mkdir /var/tmp/z; cat $HOME/x $TMPDIR/y; ls /srv /var"
    assert (await tried(line, place))[0].endswith("x\ny\n/srv:\n\n/var:\ntmp")
    assert sorted(path.name for path in place.home.iterdir()) == [".bashrc"]


async def test_a_repository_with_secrets_in_it_is_left_out(tmp_path: Path) -> None:
    place = TriedWorkspace(tmp_path / "one")
    subprocess.run([require("git"), "add", "-f", "secrets.json"], cwd=place.root, check=True, timeout=60)
    shown, _ = await tried("git show :secrets.json; ls -A", place)
    assert "of-the-user" not in shown
    assert "not a git repository" in shown
    assert ".git\n" not in shown
    assert "it would change a file that is closed" in (await tried("git init -q", place))[1]


async def test_a_workspace_with_the_users_own_folders_in_it_is_not_copied(tmp_path: Path) -> None:
    place = TriedWorkspace(tmp_path / "one")
    for folder in ("home", "data"):
        setattr(place, folder, place.root / folder)
        (place.root / folder).mkdir()
        assert f"{folder} is in the workspace" in (await tried("ls", place))[1]
        place = TriedWorkspace(tmp_path / f"after-{folder}")
    (place.root / "large").touch()
    os.truncate(place.root / "large", 10**12)
    shown, reason = await tried("stat -c %s large", place)
    assert shown == str(10**12) or "too large to be copied" in reason


async def test_a_tracked_file_in_a_build_folder_is_asked_about(tmp_path: Path) -> None:
    place = TriedWorkspace(tmp_path / "one")
    assert "changed dist/tracked.js" in (await tried("echo other > dist/tracked.js", place))[1]
    assert (await tried("echo other > dist/other.js", place))[1] == ""


async def test_a_folder_that_changes_during_a_trial_is_asked_about(tmp_path: Path) -> None:
    place = TriedWorkspace(tmp_path / "one")
    for name, text in (("src/app.py", "of the user\n"), ("new.txt", "of the user\n")):
        waits = f"mkdir build; : > build/begun; while [ ! -e build/go ]; do sleep 0.02; done; echo mine > {name}"
        trial = asyncio.create_task(tried(waits, place))
        (begun,) = await eventually_async(lambda: list((place.data / "trials").glob("*/copy/build/begun")))
        (place.root / name).write_text(text)
        (begun.parent / "go").touch()
        reason = (await trial)[1]
        assert "the folder changed while" in reason or "closed to commands" in reason
        assert (place.root / name).read_text() == text


async def test_a_copy_that_a_killed_program_left_goes_and_one_in_use_stays(
    tmp_path: Path,
) -> None:
    place = TriedWorkspace(tmp_path / "one")
    left = place.data / "trials" / "left"
    (left / "copy" / "closed").mkdir(parents=True)
    (left / "copy" / "closed").chmod(0)
    held, lock = new_place(place.data / "trials")
    assert not left.exists()
    await tried("ls", place)
    assert held.exists()
    remove(held, lock)
    assert list((place.data / "trials").iterdir()) == []


async def test_changes_of_many_large_files_are_not_read(tmp_path: Path) -> None:
    place = TriedWorkspace(tmp_path / "one")
    (place.root / "build").mkdir()
    for number in range(4):
        (place.root / "build" / f"large{number}").touch()
        os.truncate(place.root / "build" / f"large{number}", 10 * 1024 * 1024)
    assert "it would change too much" in (await tried("rm -rf build", place))[1]
    assert (await tried("rm build/large0", place))[1] == ""
    assert not may_be_tried("echo \ud800", place.root, place.context().workspace)
