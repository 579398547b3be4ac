"""The guides to what can be added, as written: each is followed in a copy of the checkout, in real shells.

What pages may say is in `support/tutorial_page.py`. A page that asks for a step that does not work, or shows an output
or code that is another now, fails here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import check_english
import check_file_sizes
import check_strings
import check_test_names
from support.checkout_copy import ROOT, copy_checkout
from support.extended import first_of
from support.isolation import IsolatedFolders
from support.ports import free_port
from support.programs import require
from support.tutorial_page import AnyStep, ChangeFile, RunCommands, read_page
from support.tutorial_reader import PROMPTS, TutorialReader, change_file

GUIDES = ROOT / "docs" / "how-to"
INSIDE = (
    "add-a-tool.md",
    "add-a-model-provider.md",
    "add-a-slash-command.md",
    "add-a-companion-protocol.md",
    "add-an-acp-agent.md",
)
"""Guides to what becomes a file of Isthmus."""
BESIDE = ("add-an-editor.md", "parts.md", "your-own-agent.md")
"""Guides to what is a program or a package of its own."""
FOLLOWED = ("add-a-slash-command.md", "parts.md")
"""Guides that every run follows; the others take longer."""
COLUMNS = 200
"""Width of the terminals, in which the longest command of a page is one line."""
WORDS = 1_500
"""Maximum number of words of a guide."""
GATES = (check_file_sizes, check_strings, check_test_names)
OF_CHANGES = ("cp ",)
"""Beginnings of the commands that change the source."""
NO_REGISTRY = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def steps_of(name: str) -> Sequence[AnyStep]:
    return read_page(name, (GUIDES / name).read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", first_of(sorted([*INSIDE, *BESIDE], key=lambda name: name not in FOLLOWED), count=len(FOLLOWED))
)
def test_a_guide_is_right_as_written(name: str, tmp_path: Path, isolated_folders: IsolatedFolders) -> None:
    copy = tmp_path / "isthmus"
    copy_checkout(copy)
    (isolated_folders.home / ".bashrc").write_text(PROMPTS, "utf-8")
    environment = {**os.environ, **NO_REGISTRY, "SHELL": str(require("bash"))}
    reader = TutorialReader(copy, environment, {"8080": str(free_port())}, columns=COLUMNS)
    with reader.reading():
        reader.follow(steps_of(name))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Sequence[str]]:
    """Return a copy in which all guides have changed the source, and the files that they have changed."""
    copy = tmp_path_factory.mktemp("changed") / "isthmus"
    copy_checkout(copy)
    before = _stamps(copy)
    for name in INSIDE:
        for step in steps_of(name):
            if isinstance(step, ChangeFile):
                change_file(step, copy)
            elif isinstance(step, RunCommands):
                for line in (line for line in step.lines if line.startswith(OF_CHANGES)):
                    subprocess.run(line, shell=True, cwd=copy, check=True)  # noqa: S602 - the page is our own
    after = _stamps(copy)
    return copy, sorted(path for path in after if after[path] != before.get(path))


def _stamps(folder: Path) -> dict[str, int]:
    files = (path for room in ("src", "tests") for path in (folder / room).rglob("*.py"))
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in files}


@pytest.mark.slow
def test_what_the_guides_add_passes_ruff_and_the_import_rules(changed: tuple[Path, Sequence[str]]) -> None:
    copy, files = changed
    programs = copy / ".venv" / "bin"
    commands = (
        ["ruff", "check", "--no-cache", *files],
        ["ruff", "format", "--no-cache", "--check", *files],
        ["lint-imports"],
    )
    for name, *arguments in commands:
        command = [str(programs / name), *arguments]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_what_the_guides_add_is_in_plain_english_and_short_files(
    changed: tuple[Path, Sequence[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, files = changed
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(copy / file, tmp_path / file)
    statuses = [check_english.main(tmp_path, []), *(gate.main(tmp_path) for gate in GATES)]
    assert statuses == [0] * 4, capsys.readouterr().out


@pytest.mark.slow
def test_what_the_guides_add_has_complete_types(changed: tuple[Path, Sequence[str]]) -> None:
    copy, files = changed
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", str(copy / ".venv/bin/python"), *files]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False, timeout=110)
    found = [f"{each['file']}: {each['message']}" for each in json.loads(done.stdout)["generalDiagnostics"]]
    assert found == []


@pytest.mark.parametrize("name", [*INSIDE, *BESIDE])
def test_a_guide_is_short_and_links_to_the_folder_of_its_example(name: str) -> None:
    text = (GUIDES / name).read_text("utf-8")
    assert len(text.split()) <= WORDS
    folders = {str(path.parent) for path in (ROOT / "examples").rglob("README.md")}
    examples = {match[1] for match in re.finditer(r"\bexamples/(\w+)/", text)}
    assert any(str(ROOT / "examples" / example) in folders for example in examples)
