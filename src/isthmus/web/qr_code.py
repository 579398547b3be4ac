"""QR codes (ISO/IEC 18004) of short texts such as links: versions 1 to 10, bytes, error correction M. Sans-I/O."""

from collections.abc import Iterator, Sequence
from itertools import product

from isthmus.errors import IsthmusError
from isthmus.record import record

MAXIMUM_BYTES = 213
"""Maximum length of a text in bytes of UTF-8."""
QUIET = 4
"""Width in modules of the light margin that a reader needs around a code."""
_TOTAL = (26, 44, 70, 100, 134, 172, 196, 242, 292, 346)
"""Codewords of each version, with those for error correction."""
_CORRECTING = (10, 16, 26, 18, 24, 16, 18, 22, 22, 26)
"""Codewords for error correction in each block."""
_BLOCKS = (1, 1, 1, 2, 2, 4, 4, 4, 5, 5)
_ALIGNED = ((), (6, 18), (6, 22), (6, 26), (6, 30), (6, 34), (6, 22, 38), (6, 24, 42), (6, 26, 46), (6, 28, 50))
"""Rows and columns of the centres of alignment patterns."""
_LOOKS_LIKE_FINDER = ((1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0), (0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1))

_EXPONENTS: list[int] = [1]
for _ in range(254):
    _EXPONENTS.append(_EXPONENTS[-1] << 1 ^ (0x11D if _EXPONENTS[-1] & 0x80 else 0))
_LOGARITHMS = {value: exponent for exponent, value in enumerate(_EXPONENTS)}


class TextTooLongError(IsthmusError):
    """Raised when a text does not fit into a code."""


@record
class QrCode:
    """A code: rows of modules without the margin, 1 for dark."""

    rows: tuple[tuple[int, ...], ...]

    def as_lines(self) -> list[str]:
        """Return the rows as texts of 0 and 1."""
        return ["".join(map(str, row)) for row in self.rows]

    def as_terminal_text(self) -> str:
        """Return the code with its margin in half blocks, black on white, for a terminal with 256 colours."""
        width = len(self.rows) + 2 * QUIET
        padded = [(0,) * width] * QUIET
        padded += [(*(0,) * QUIET, *row, *(0,) * QUIET) for row in self.rows]
        padded += [(0,) * width] * (QUIET + 1)
        lines = [
            "".join(" ▀▄█"[upper + 2 * lower] for upper, lower in zip(padded[at], padded[at + 1], strict=True))
            for at in range(0, len(padded) - 1, 2)
        ]
        return "".join(f"\x1b[38;5;16;48;5;231m{line}\x1b[0m\n" for line in lines)


def qr_code(text: str) -> QrCode:
    """Return the smallest code of a text.

    Raises:
        TextTooLongError: it has more than :data:`MAXIMUM_BYTES` bytes.
    """
    data = text.encode()
    version = next((number for number in range(1, 11) if len(data) <= _room(number)), None)
    if version is None:
        raise TextTooLongError(f"a QR code was wanted for {len(data)} bytes; it has room for {MAXIMUM_BYTES}")
    canvas = _Canvas(version)
    canvas.fill(_interleaved(version, _data_codewords(version, data)))
    drawn = [canvas.masked(mask) for mask in range(8)]
    return QrCode(min(drawn, key=_penalty))


def _room(version: int) -> int:
    """Return the number of bytes of text that fit into a version."""
    return _data_size(version) - (2 if version < 10 else 3)


def _data_size(version: int) -> int:
    return _TOTAL[version - 1] - _CORRECTING[version - 1] * _BLOCKS[version - 1]


def _data_codewords(version: int, data: bytes) -> list[int]:
    size = _data_size(version)
    bits = f"0100{len(data):0{8 if version < 10 else 16}b}" + "".join(f"{byte:08b}" for byte in data)
    bits = (bits + "0000")[: size * 8]
    bits += "0" * (-len(bits) % 8)
    found = [int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)]
    return found + [(0xEC, 0x11)[at % 2] for at in range(size - len(found))]


def _interleaved(version: int, data: Sequence[int]) -> list[int]:
    """Return the codewords in the order in which they are drawn, with those for error correction behind."""
    number, degree = _BLOCKS[version - 1], _CORRECTING[version - 1]
    short, longer = divmod(len(data), number)
    blocks: list[Sequence[int]] = []
    at = 0
    for index in range(number):
        length = short + (index >= number - longer)
        blocks.append(data[at : at + length])
        at += length
    corrections = [_correction(block, degree) for block in blocks]
    mixed = [block[index] for index in range(short + 1) for block in blocks if index < len(block)]
    return mixed + [block[index] for index in range(degree) for block in corrections]


def _times(one: int, other: int) -> int:
    """Return the product in the field of 256 elements of the standard."""
    return _EXPONENTS[(_LOGARITHMS[one] + _LOGARITHMS[other]) % 255] if one and other else 0


def _correction(block: Sequence[int], degree: int) -> list[int]:
    """Return the Reed-Solomon codewords of a block."""
    generator = [1]
    for exponent in range(degree):
        shifted = [*generator, 0]
        for at, value in enumerate(generator):
            shifted[at + 1] ^= _times(value, _EXPONENTS[exponent])
        generator = shifted
    rest = [*block, *[0] * degree]
    for at in range(len(block)):
        if factor := rest[at]:
            for offset, value in enumerate(generator):
                rest[at + offset] ^= _times(value, factor)
    return rest[len(block) :]


class _Canvas:
    """The modules of a code while it is drawn: None where data goes."""

    def __init__(self, version: int) -> None:
        self._size = 17 + 4 * version
        self._fixed: list[list[int | None]] = [[None] * self._size for _ in range(self._size)]
        self._data: dict[tuple[int, int], int] = {}
        last = self._size - 7
        for at in range(8, self._size - 8):
            self._fixed[6][at] = self._fixed[at][6] = 1 - at % 2
        for row, column in ((0, 0), (0, last), (last, 0)):
            self._finder(row, column)
        places = _ALIGNED[version - 1]
        finders = {(6, 6), (6, last), (last, 6)}
        for row, column in set(product(places, places)) - finders:
            self._square(row, column)
        self._draw_version(version)
        self._draw_format(0)

    def _finder(self, top: int, left: int) -> None:
        for row, column in product(range(-1, 8), range(-1, 8)):
            if 0 <= top + row < self._size and 0 <= left + column < self._size:
                ring = max(abs(row - 3), abs(column - 3))
                self._fixed[top + row][left + column] = int(ring not in (2, 4))

    def _square(self, middle_row: int, middle_column: int) -> None:
        for row, column in product(range(-2, 3), range(-2, 3)):
            self._fixed[middle_row + row][middle_column + column] = int(max(abs(row), abs(column)) != 1)

    def _draw_version(self, version: int) -> None:
        if version < 7:
            return
        rest = version << 12
        for shift in range(5, -1, -1):
            if rest >> (shift + 12) & 1:
                rest ^= 0x1F25 << shift
        bits = version << 12 | rest
        for at in range(18):
            row, column = at // 3, self._size - 11 + at % 3
            self._fixed[row][column] = self._fixed[column][row] = bits >> at & 1

    def _draw_format(self, mask: int) -> None:
        data = mask  # the two bits of the level M are 00
        rest = data << 10
        for shift in range(4, -1, -1):
            if rest >> (shift + 10) & 1:
                rest ^= 0x537 << shift
        bits = (data << 10 | rest) ^ 0x5412
        down = (0, 1, 2, 3, 4, 5, 7, 8, *range(self._size - 7, self._size))
        across = (*range(self._size - 1, self._size - 9, -1), 7, 5, 4, 3, 2, 1, 0)
        for at in range(15):
            self._fixed[down[at]][8] = bits >> at & 1
            self._fixed[8][across[at]] = bits >> at & 1
        self._fixed[self._size - 8][8] = 1

    def fill(self, codewords: Sequence[int]) -> None:
        """Put the codewords into the free modules; those that are left stay light."""
        bits = (word >> shift & 1 for word in codewords for shift in range(7, -1, -1))
        self._data = {place: next(bits, 0) for place in self._free()}

    def _free(self) -> Iterator[tuple[int, int]]:
        columns = [column for column in range(self._size - 1, 0, -2) if column > 6] + [5, 3, 1]
        for turn, right in enumerate(columns):
            rows = range(self._size) if turn % 2 else range(self._size - 1, -1, -1)
            for row, column in product(rows, (right, right - 1)):
                if self._fixed[row][column] is None:
                    yield row, column

    def masked(self, mask: int) -> tuple[tuple[int, ...], ...]:
        """Return all modules with one of the eight masks over the data."""
        self._draw_format(mask)
        rows = [[value or 0 for value in row] for row in self._fixed]
        for (row, column), value in self._data.items():
            rows[row][column] = value ^ _is_masked(mask, row, column)
        return tuple(map(tuple, rows))


def _is_masked(mask: int, row: int, column: int) -> int:
    product_of_both = row * column
    return int(
        (
            (row + column) % 2,
            row % 2,
            column % 3,
            (row + column) % 3,
            (row // 2 + column // 3) % 2,
            product_of_both % 2 + product_of_both % 3,
            (product_of_both % 2 + product_of_both % 3) % 2,
            ((row + column) % 2 + product_of_both % 3) % 2,
        )[mask]
        == 0
    )


def _penalty(rows: tuple[tuple[int, ...], ...]) -> int:
    """Return how hard a code is to read, by the four rules of the standard."""
    size = len(rows)
    found = 0
    for line in (*rows, *zip(*rows, strict=True)):
        run = 1
        for before, now in zip(line, (*line[1:], None), strict=True):
            if now == before:
                run += 1
                continue
            found += run - 2 if run >= 5 else 0
            run = 1
        found += 40 * sum(line[at : at + 11] in _LOOKS_LIKE_FINDER for at in range(size - 10))
    for row, column in product(range(size - 1), range(size - 1)):
        corner = rows[row][column : column + 2]
        found += 3 if corner in ((0, 0), (1, 1)) and corner == rows[row + 1][column : column + 2] else 0
    share = sum(map(sum, rows)) * 100 / (size * size)
    return found + 10 * int(abs(share - 50) / 5)
