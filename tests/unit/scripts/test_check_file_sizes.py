from pathlib import Path

import pytest

from check_file_sizes import FAIL_ABOVE, WARN_ABOVE, main


def write_lines(path: Path, count: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n" * count, encoding="utf-8")


@pytest.mark.parametrize("room", ["src/isthmus", "tests/unit", "bench", "scripts"])
def test_a_file_over_the_limit_fails_in_every_room(
    tmp_path: Path, room: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / room / "long.py", FAIL_ABOVE + 1)
    assert main(tmp_path) == 1
    assert f"error: {room}/long.py has 601 lines" in capsys.readouterr().out


def test_a_file_between_the_limits_is_named_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(tmp_path / "src" / "warned.py", FAIL_ABOVE)
    write_lines(tmp_path / "src" / "short.py", WARN_ABOVE)
    assert main(tmp_path) == 0
    out = capsys.readouterr().out
    assert "warning: src/warned.py has 600 lines" in out
    assert "short.py" not in out


def test_a_last_line_without_a_line_break_counts(tmp_path: Path) -> None:
    write_lines(tmp_path / "src" / "long.py", FAIL_ABOVE)
    with (tmp_path / "src" / "long.py").open("a", encoding="utf-8") as file:
        file.write("y = 2")
    assert main(tmp_path) == 1


def test_what_npm_installed_and_other_files_are_not_counted(tmp_path: Path) -> None:
    write_lines(tmp_path / "tests" / "peers" / "node" / "node_modules" / "gyp" / "long.py", FAIL_ABOVE + 1)
    write_lines(tmp_path / "src" / "long.lua", FAIL_ABOVE + 1)
    write_lines(tmp_path / "elsewhere" / "long.py", FAIL_ABOVE + 1)
    assert main(tmp_path) == 0
