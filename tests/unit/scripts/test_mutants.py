"""The list of mutants follows the code, and the program that tries them tells what noticed from what did not."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import mutants
from mutants import ROOT, Mutant, Verdict, chosen, kept_verdicts, missing_tests, mutated, read_mutants

GUARD = "def may_write(epoch: int, read: int) -> bool:\n    return epoch == read\n"
TESTS = """
from isthmus import guard

def test_happy():
    assert guard.may_write(1, 1)

def test_old_row():
    assert not guard.may_write(2, 1)
"""
SETTINGS = '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n'
FILE = "src/isthmus/guard.py"


def entry(name: str, old: str = "epoch == read", new: str = "True", test: str = "test_old_row") -> str:
    return (
        f'[[mutant]]\nname = "{name}"\nfile = "{FILE}"\nold = "{old}"\nnew = "{new}"\n'
        f'tests = ["tests/test_guard.py::{test}"]\n'
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with one guard and its tests, without a list."""
    for file, text in {
        FILE: GUARD,
        "src/isthmus/__init__.py": "",
        "tests/test_guard.py": TESTS,
        "pyproject.toml": SETTINGS,
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    return tmp_path


def listed(checkout: Path, *entries: str) -> Path:
    (checkout / mutants.LIST).write_text("\n".join(entries), encoding="utf-8")
    return checkout


@pytest.mark.parametrize("mutant", read_mutants(ROOT), ids=lambda mutant: mutant.name)
def test_each_change_can_be_made_and_has_its_tests(mutant: Mutant) -> None:
    assert mutated(mutant, ROOT)
    assert missing_tests(mutant, ROOT) == []


def test_the_list_has_its_guards_of_which_none_stands_there_twice() -> None:
    found = read_mutants(ROOT)
    assert len(found) >= 58
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in found}) == len(found)


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([entry("gone", old="epoch != read")], "found it 0 times"),
        ([entry("often", old="read")], "found it 2 times"),
        ([entry("broken", new="epoch ==")], "is not Python after the change"),
        ([entry("same", new="epoch  ==  read")], "changes nothing that runs"),
        ([entry("one"), entry("one")], "repeated: one"),
        ([entry("odd") + "more = 1\n"], "expected the keys"),
        ([entry("missing", test="test_young_row")], "there is no test tests/test_guard.py::test_young_row"),
    ],
)
def test_a_list_that_does_not_fit_the_code_is_refused_by_name(
    checkout: Path, capsys: pytest.CaptureFixture[str], entries: Sequence[str], told: str
) -> None:
    assert mutants.main([], listed(checkout, *entries)) == 1
    assert told in capsys.readouterr().out


def test_mutants_are_chosen_by_the_words_of_their_name_and_file() -> None:
    one, two = (Mutant(name, f"src/{name}.py", "a", "b", ("t",)) for name in ("SQLite claim", "PostgreSQL claim"))
    assert chosen([one, two], []) == [one, two]
    assert chosen([one, two], ["claim", "sqlite"]) == [one]
    assert chosen([one, two], ["lease"]) == []


@pytest.mark.extended
def test_a_change_is_noticed_by_a_failing_test_and_not_by_a_broken_import(checkout: Path) -> None:
    listed(
        checkout,
        entry("noticed"),
        entry("lived", test="test_happy"),
        entry("broken", old="def may_write", new="raise ImportError\\n\\ndef may_write"),
    )
    told = run(checkout)
    assert told.returncode == 1
    lines = told.stdout.splitlines()
    assert lines[0].startswith("all tests of 3 mutants pass without a change")
    assert [line.split()[0] for line in lines if " s  " in line] == ["noticed", "LIVED", "BROKEN"]
    assert "noticed <- test_old_row" in told.stdout
    assert lines[-1].startswith("1 of 3 noticed in ")
    assert (checkout / FILE).read_text(encoding="utf-8") == GUARD
    verdicts = {"noticed": "noticed", "lived": "LIVED", "broken": "BROKEN"}
    assert kept_verdicts(checkout) == verdicts
    assert run(checkout, "noticed").returncode == 0
    assert kept_verdicts(checkout) == verdicts
    (checkout / FILE).write_text(f"{GUARD}\n", encoding="utf-8")
    assert kept_verdicts(checkout) == {}, "what was tried is another file now"


@pytest.mark.slow
def test_nothing_is_tried_while_a_test_fails_without_a_change(checkout: Path) -> None:
    listed(checkout, entry("noticed"))
    (checkout / FILE).write_text(GUARD.replace("epoch == read", "epoch == read or epoch == 2"), encoding="utf-8")
    told = run(checkout)
    assert told.returncode == 1
    assert "fail without a change" in told.stdout
    assert Verdict.NOTICED.value not in told.stdout.splitlines()[-1]


def run(checkout: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    program = f"import sys, pathlib, mutants; sys.exit(mutants.main(sys.argv[1:], pathlib.Path({str(checkout)!r})))"
    # Of the plugins only those that the program's options need: loading all takes longer than the tests.
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "_hypothesis_pytestplugin,pytest_timeout"}
    variables = os.environ | plugins | {"PYTHONPATH": str(Path(mutants.__file__).parent)}
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, env=variables)
