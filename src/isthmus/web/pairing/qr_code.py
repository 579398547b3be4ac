"""QR codes (ISO/IEC 18004) of short texts such as links, drawn by segno: up to version 10, error correction M."""

from isthmus.errors import IsthmusError
from isthmus.record import record

MAXIMUM_BYTES = 213
"""Maximum length of a text in bytes of UTF-8. A larger code has modules that are too small to read from a terminal."""
QUIET = 4
"""Width in modules of the light margin that a reader needs around a code."""


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
    import segno  # here, because it takes 80 ms, and few servers draw a code

    if (length := len(text.encode())) > MAXIMUM_BYTES:
        raise TextTooLongError(f"a QR code was wanted for {length} bytes; it has room for {MAXIMUM_BYTES}")
    code = segno.make_qr(text, error="m", mode="byte", encoding="utf-8", boost_error=False)
    return QrCode(tuple(map(tuple, code.matrix)))
