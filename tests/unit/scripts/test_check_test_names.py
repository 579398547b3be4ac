from pathlib import Path

import pytest

from check_test_names import faults, main

LONG = "test_" + "a" * 75
LONGEST = "test_" + "a" * 74


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"def {LONG}(): ...\n", [1]),
        (f"async def {LONG}(): ...\n", [1]),
        (f"class TestIt:\n    def {LONG}(self): ...\n", [2]),
        ("def test_it(): ...\n\n\nasync def test_it(): ...\n", [4]),
        (f"def {LONGEST}(): ...\n", []),
        (f"def {LONG[5:]}_helper_that_is_not_a_test(): ...\n", []),
        ("def test_it(): ...\n\n\nclass TestIt:\n    def test_it(self): ...\n", []),
    ],
)
def test_a_name_that_is_too_long_or_occurs_again_is_found(text: str, lines: list[int]) -> None:
    assert [line for line, _ in faults(text)] == lines


def test_the_gate_names_the_place_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_good.py").write_text(f"def {LONGEST}(): ...\n", "utf-8")
    assert main(tmp_path) == 0
    (tmp_path / "tests" / "test_bad.py").write_text(f"def {LONG}(): ...\n", "utf-8")
    assert main(tmp_path) == 1
    assert f"error: tests/test_bad.py:1: {LONG} has 80 characters" in capsys.readouterr().out
