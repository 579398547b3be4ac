"""QR codes, read back by the standard's own steps."""

import pytest

from isthmus.web.pairing.qr_code import MAXIMUM_BYTES, TextTooLongError, qr_code
from support.qr_reader import VERSIONS, read_qr

# Drawn by another encoder (segno 1.6.6, level M, mask 4) of a text that fills its version.
BY_ANOTHER = """\
1111111011001011001111111
1000001001111000101000001
1011101000110011101011101
1011101011101100101011101
1011101011011111101011101
1000001010001010101000001
1111111010101010101111111
0000000010110011000000000
1000101110111000111111001
0110000101010111100111010
0101001110110101001001100
0001000100110010011010110
0110111001101001011101111
1111100001101011010010010
0010011011110111100111100
0001100101000011010110110
1110001111101000111111100
0000000011000111100010000
1111111011011010101010000
1000001000010000100011111
1011101011001000111111100
1011101000000111111100111
1011101000111011111001010
1000001001111010000111110
1111111010010011011000111"""


@pytest.mark.parametrize("version", range(1, 11))
def test_a_code_of_each_version_says_its_text(version: int) -> None:
    room = VERSIONS[version - 1][0]
    for length in (room, room - 1, room - 5):
        text = ("https://host.test/ui/#code=" + "Aé9_" * 60).encode()[:length].decode(errors="replace")[:length]
        text = text if len(text.encode()) == length else "x" * length
        code = qr_code(text)
        assert len(code.rows) == 17 + 4 * version
        assert read_qr(code.rows) == text


def test_a_code_is_drawn_as_another_encoder_draws_it() -> None:
    assert "\n".join(qr_code("https://h.test/ui/#code=AB").as_lines()) == BY_ANOTHER


def test_a_text_that_is_too_long_is_refused() -> None:
    qr_code("x" * MAXIMUM_BYTES)
    with pytest.raises(TextTooLongError, match="214 bytes"):
        qr_code("x" * (MAXIMUM_BYTES + 1))


def test_a_terminal_shows_black_modules_on_white_with_a_margin() -> None:
    code = qr_code("x")
    lines = code.as_terminal_text().splitlines()
    assert len(lines) == 15
    drawn = [line.removeprefix("\x1b[38;5;16;48;5;231m").removesuffix("\x1b[0m") for line in lines]
    assert {len(line) for line in drawn} == {29}
    modules = [[(mark in "▀█", mark in "▄█") for mark in line] for line in drawn]
    flat = [[int(pair[half]) for pair in line] for line in modules for half in (0, 1)]
    assert [tuple(row[4:-4]) for row in flat[4:25]] == list(code.rows)
    assert not any(map(any, (flat[0], flat[3], flat[25], flat[29])))
