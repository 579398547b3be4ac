"""Conversion between a text and Neovim's buffer of lines and options, without losing a byte. Pure.

Line ends that the buffer's format does not cover (a lone CR in a file of LF, mixed ends) stay in the lines.
"""

from contextlib import suppress
from typing import Any

from isthmus.encoding.codec import from_json
from isthmus.errors import DecodeError
from isthmus.record import record

BYTE_ORDER_MARK = "\ufeff"
_LINE_ENDS = {"unix": "\n", "dos": "\r\n", "mac": "\r"}


@record
class BufferText:
    """Lines of a buffer, at least one, and Neovim's options of these names."""

    lines: tuple[str, ...]
    fileformat: str = "unix"
    endofline: bool = True
    bomb: bool = False

    @classmethod
    def of(cls, text: str) -> "BufferText":
        """Return the buffer for ``text``. An empty text is one empty line without an end."""
        bomb = text.startswith(BYTE_ORDER_MARK)
        text = text.removeprefix(BYTE_ORDER_MARK)
        fileformat = "dos" if "\n" in text and text.count("\n") == text.count("\r\n") else "unix"
        end = _LINE_ENDS[fileformat]
        endofline = text.endswith(end)
        return cls(tuple(text.removesuffix(end).split(end)), fileformat, endofline, bomb)

    @classmethod
    def from_neovim(cls, value: object) -> "BufferText":
        """Return the buffer in a table that the script in Neovim sends.

        Raises:
            DecodeError: ``value`` is not a table of this form.
        """
        return from_json(cls, value)

    def to_neovim(self) -> dict[str, Any]:
        """Return the table for the script in Neovim."""
        return {
            "lines": list(self.lines),
            "fileformat": self.fileformat,
            "endofline": self.endofline,
            "bomb": self.bomb,
        }

    def text(self) -> str:
        """Return the text as Neovim would write it. A buffer whose only line is empty is an empty text."""
        if self.lines == ("",):
            return BYTE_ORDER_MARK if self.bomb else ""
        end = _LINE_ENDS.get(self.fileformat, "\n")
        body = end.join(self.lines) + (end if self.endofline else "")
        return (BYTE_ORDER_MARK if self.bomb else "") + body


def final_text(proposed: str, text: object) -> str:
    """Return the text in a review's view; None, or anything unreadable, stands for the unchanged proposal."""
    if text is None:
        return proposed
    with suppress(DecodeError):
        return BufferText.from_neovim(text).text()
    return proposed
