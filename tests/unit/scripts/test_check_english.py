from pathlib import Path

import pytest

from check_english import faults, main


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('"""What it is."""\n', [1]),
        ('"""A module."""\n\nLIMIT = 3\n"""How many there are."""\n', [4]),
        ('class It:\n    """A class."""\n\n    size: int\n    """Of the file."""\n', [5]),
        ('def it():\n    """Which one."""\n', [2]),
        ("x = 'that is no number'\n", [1]),
        ("x = f'{1} is no number'\n", [1]),
        ('"""A module.\n\nIt waits for ever.\n"""\n', [3]),
        ("# spec 3 says so\n", [1]),
        ('"""Return those of a task."""\n', [1]),
        ('"""A module.\n\nIt is that\nof whoever needs such\na thing.\n"""\n', [3, 4, 4]),
        ('"""A module."""\nx = "those of whoever has such a thing"\n', []),
        ('"""Whether it is open."""\nx = "there is no file, and it is no longer than that"\n', []),
        ('def it():\n    """Return it."""\n    "What is no docstring here"\n', [3]),
        ('def it():\n    """Return it."""\n    return "What"\n', []),
    ],
)
def test_what_makes_a_reader_read_twice_is_found(text: str, lines: list[int]) -> None:
    assert [line for line, _ in faults(text)] == lines


def test_files_that_are_older_than_a_pattern_are_not_checked_for_it() -> None:
    text = '"""Return those of a task."""\n'
    assert list(faults(text, is_older=True)) == []


def test_the_gate_names_the_place_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "good.py").write_text('"""A tool."""\n', "utf-8")
    assert main(tmp_path, []) == 0
    (tmp_path / "src" / "bad.py").write_text('"""Of a tool."""\n', "utf-8")
    assert main(tmp_path, []) == 1
    assert main(tmp_path, ["other/"]) == 0
    assert capsys.readouterr().out.startswith("error: src/bad.py:1: a docstring opens with 'Of'")
