from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.tools.shell.shell_output import HEAD_BYTES, TAIL_BYTES, ShellOutput, readable


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;u\x1b\\link\x1b(B", "red xlink"),
        (b"10%\r50%\r100%\ndone", "100%\ndone"),
        (b"10%\r50%\r", "50%"),
        (b"a\x08b\x08\x08\x08c", "c"),
        (b"bell\x07\x00\x9b", "bell\ufffd\ufffd\ufffd"),
        (b"\xff\xfe\xc3\xa9", "\ufffd\ufffd\xe9"),
        (b"cut in a sequence \x1b", "cut in a sequence "),
        (b"tab\tkept", "tab\tkept"),
    ],
)
def test_output_becomes_text_as_a_terminal_would_leave_it(data: bytes, text: str) -> None:
    assert readable(data) == text


@given(st.binary(max_size=200))
def test_any_bytes_become_text_without_control_characters(data: bytes) -> None:
    text = readable(data)
    assert not [character for character in text if ord(character) < 32 and character not in "\n\t"]
    text.encode()


def test_a_very_long_line_loses_its_middle() -> None:
    text = readable(b"a" * 50_000)
    assert len(text) < 4_100
    assert "46000 characters are left out here" in text


def test_short_output_is_shown_whole_and_makes_no_file(tmp_path: Path) -> None:
    output = ShellOutput(tmp_path / "out" / "call.txt")
    output.feed(b"x\n" * 15_000)
    output.close()
    assert output.text() == "x\n" * 15_000
    assert output.note() == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=8))
def test_long_output_is_cut_in_the_middle_and_kept_whole_in_a_file(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    path = tmp_path_factory.mktemp("out") / "deep" / "call.txt"
    data = "".join(f"{number}\n" for number in range(60_000)).encode()[: sum(sizes)]
    output, position = ShellOutput(path), 0
    for size in sizes:
        output.feed(data[position : position + size])
        position += size
    output.close()
    if len(data) <= HEAD_BYTES + TAIL_BYTES:
        assert output.text() == data.decode()
        return
    left_out = len(data) - HEAD_BYTES - TAIL_BYTES
    head, tail = data[:HEAD_BYTES].decode(), data[-TAIL_BYTES:].decode()
    assert output.text() == f"{head}\n[... {left_out} bytes are left out here ...]\n{tail}"
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o777 == 0o600
    assert output.note() == f"[The output has {len(data)} bytes; all of it is in {path}]"


def test_the_file_has_a_limit_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "call.txt"
    output = ShellOutput(path)
    for _ in range(6):
        output.feed(b"x" * 10_000_000)
    output.close()
    assert path.stat().st_size == 52_428_800
    assert output.note() == f"[The output has 60000000 bytes; the first 52428800 of them are in {path}]"


def test_a_folder_that_cannot_be_written_costs_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    output = ShellOutput(tmp_path / "taken" / "call.txt")
    output.feed(b"x" * 100_000)
    output.close()
    assert "could not be kept whole" in output.note()
    assert "left out here" in output.text()


def test_what_another_call_with_the_same_id_kept_stays(tmp_path: Path) -> None:
    outputs = [ShellOutput(tmp_path / "call.txt") for _ in range(3)]
    for number, output in enumerate(outputs):
        output.feed(str(number).encode() * 100_000)
    for output in outputs:
        output.close()
    kept = sorted(path.read_bytes() for path in tmp_path.iterdir())
    assert kept == [str(number).encode() * 100_000 for number in range(3)]
    assert len({output.note() for output in outputs}) == 3
