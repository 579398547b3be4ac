"""Rows after a change of the window's width, in terminals that wrap the lines on the screen anew. Pure."""

from collections.abc import Mapping, Sequence


def reflows(variables: Mapping[str, str]) -> bool:
    """Return whether the terminal wraps lines anew when its width changes, as most do.

    xterm itself, the Linux console and GNU Screen cut them instead. ``variables`` are the environment's.
    """
    if "TMUX" in variables:
        return True
    return not ("XTERM_VERSION" in variables or "STY" in variables or variables.get("TERM") == "linux")


def rows_of_line(width: int, columns: int) -> int:
    """Return the number of rows that a line of ``width`` cells takes."""
    return max(1, -(-width // max(1, columns)))


def rows_above_cursor(widths: Sequence[int], cursor: int, columns: int) -> int:
    """Return the number of rows above the cursor, which is in column ``cursor`` of the last line.

    ``widths`` are the lines' widths in cells, from the first line on.
    """
    *above, last = widths
    # Behind a full row the cursor stays in it until the next character.
    within = cursor - 1 if cursor and cursor >= last else cursor
    return sum(rows_of_line(width, columns) for width in above) + within // max(1, columns)
