"""Reads QR codes by the standard's own steps: format, mask, codewords, Reed-Solomon syndromes, text."""

from collections.abc import Callable, Sequence

# Of each version: bytes of text, blocks, codewords for correction in a block (ISO/IEC 18004, tables 7 and 9, level M).
VERSIONS = [
    (14, 1, 10), (26, 1, 16), (42, 1, 26), (62, 2, 18), (84, 2, 24),
    (106, 4, 16), (122, 4, 18), (152, 4, 22), (180, 5, 22), (213, 5, 26),
]  # fmt: skip
ALIGNED = [(), (18,), (22,), (26,), (30,), (34,), (6, 22, 38), (6, 24, 42), (6, 26, 46), (6, 28, 50)]
STATED = {7: 0x07C94, 8: 0x085BC, 9: 0x09A99, 10: 0x0A4D3}
"""Bits that state a version (table D.1)."""
MASKS: Sequence[Callable[[int, int], int]] = [
    lambda i, j: (i + j) % 2, lambda i, j: i % 2, lambda i, j: j % 3, lambda i, j: (i + j) % 3,
    lambda i, j: (i // 2 + j // 3) % 2, lambda i, j: i * j % 2 + i * j % 3,
    lambda i, j: (i * j % 2 + i * j % 3) % 2, lambda i, j: ((i + j) % 2 + i * j % 3) % 2,
]  # fmt: skip


def is_function(version: int, row: int, column: int) -> bool:
    """Return whether a module belongs to a pattern, and not to the data."""
    size = 17 + 4 * version
    if row == 6 or column == 6:
        return True
    if (row < 9 and (column < 9 or column > size - 9)) or (row > size - 9 and column < 9):
        return True
    if version >= 7 and ((row < 6 and column > size - 12) or (column < 6 and row > size - 12)):
        return True
    middle = ALIGNED[version - 1]
    corners = {(6, 6), (6, size - 7), (size - 7, 6)}
    return any(abs(row - i) < 3 and abs(column - j) < 3 for i in middle for j in middle if (i, j) not in corners)


def product(one: int, other: int) -> int:
    """Return the product of two elements of the field by the polynomial 0x11D."""
    found = 0
    while other:
        found ^= one if other & 1 else 0
        one = one << 1 ^ (0x11D if one & 0x80 else 0)
        other >>= 1
    return found


def read_qr(rows: Sequence[Sequence[int]]) -> str:
    """Return the text of a code's modules, after checking all that a reader would check."""
    size = len(rows)
    version = (size - 17) // 4
    across = [rows[8][column] for column in (*range(6), 7, 8)] + [rows[row][8] for row in (7, *range(5, -1, -1))]
    down = [rows[row][8] for row in range(size - 1, size - 8, -1)] + list(rows[8][-8:])
    assert across == down
    form = int("".join(map(str, across)), 2) ^ 0x5412
    assert form >> 13 == 0, "the level is not M"
    if version >= 7:
        corner = [rows[size - 9 - at % 3][5 - at // 3] for at in range(18)]
        assert int("".join(map(str, corner)), 2) == STATED[version]
        assert corner == [rows[5 - at // 3][size - 9 - at % 3] for at in range(18)]
    mask = MASKS[form >> 10 & 7]
    bits: list[int] = []
    right, is_up = size - 1, True
    while right > 0:
        right -= right == 6
        for row in range(size - 1, -1, -1) if is_up else range(size):
            for column in (right, right - 1):
                if not is_function(version, row, column):
                    bits.append(rows[row][column] ^ (mask(row, column) == 0))
        right, is_up = right - 2, not is_up
    words = [int("".join(map(str, bits[at : at + 8])), 2) for at in range(0, len(bits) - 7, 8)]
    _, number, degree = VERSIONS[version - 1]
    length, longer = divmod(len(words) - number * degree, number)
    blocks: list[list[int]] = [[] for _ in range(number)]
    rest = iter(words)
    for index in range(length + 1):
        for at, block in enumerate(blocks):
            if index < length or at >= number - longer:
                block.append(next(rest))
    text = [word for block in blocks for word in block]
    for _ in range(degree):
        for block in blocks:
            block.append(next(rest))
    for block in blocks:
        power = 1
        for _ in range(degree):
            syndrome = 0
            for word in block:
                syndrome = product(syndrome, power) ^ word
            assert syndrome == 0
            power = product(power, 2)
    stream = "".join(f"{word:08b}" for word in text)
    assert stream[:4] == "0100"
    start = 12 if version < 10 else 20
    count = int(stream[4:start], 2)
    return bytes(int(stream[at : at + 8], 2) for at in range(start, start + 8 * count, 8)).decode()
