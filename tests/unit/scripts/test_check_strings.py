from pathlib import Path

import pytest

from check_strings import joined_lines, main

QUOTES = '"' * 3


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f'NAME = (\n    "word"\n    {QUOTES}Its docstring.{QUOTES}\n)\n', [3]),
        (f'NAME = "word" {QUOTES}Its docstring.{QUOTES}\n', [1]),
        (f"NAME = (\n    {QUOTES}text{QUOTES}\n    # why\n    'word'\n)\n", [4]),
        (f'NAME = (\n    f"{{word}}"\n    rf{QUOTES}{{"x"}}{QUOTES}\n)\n', [3]),
        (f'NAME = "word"\n{QUOTES}Its docstring.{QUOTES}\n', []),
        ('NAME = (\n    "a long "\n    f"message {1}"\n)\n', []),
        (f'call({QUOTES}a{QUOTES}, "b")\n', []),
        (f'def f():\n    {QUOTES}Doc.{QUOTES}\n    "attribute"\n', []),
    ],
)
def test_a_string_joined_to_a_docstring_is_found(text: str, lines: list[int]) -> None:
    assert list(joined_lines(text)) == lines


def test_the_gate_names_the_place_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "good.py").write_text('A = "a"\n', "utf-8")
    assert main(tmp_path) == 0
    (tmp_path / "src" / "bad.py").write_text(f'A = (\n    "a"\n    {QUOTES}b{QUOTES}\n)\n', "utf-8")
    assert main(tmp_path) == 1
    assert "error: src/bad.py:3: " in capsys.readouterr().out
