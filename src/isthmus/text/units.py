"""Sizes, times and counts as users write and read them: ``500MB``, ``30d``, ``1 file``. Not for text on a wire."""

import re

from isthmus.errors import IsthmusError

_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_AGES = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


class AmountError(IsthmusError):
    """The text is not a size or an age; the message says what was expected."""


def parse_size(text: str) -> int:
    """Return the bytes of ``500MB`` (10^6 each), ``1GiB`` (2^30), or of a plain number. Raises AmountError."""
    found = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([A-Za-z]*)\s*", text)
    unit = None if found is None else _SIZES.get(found[2].upper())
    if found is None or unit is None:
        expected = "a number with B, KB, MB, GB, KiB, MiB or GiB, e.g. 500MB"
        raise AmountError(f"{text[:100]!r} is not a size; expected {expected}")
    return int(float(found[1]) * unit)


def parse_age(text: str) -> float:
    """Return the seconds of ``30d``, ``12h``, ``2w``. Raises AmountError."""
    found = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([smhdw])\s*", text)
    if found is None:
        raise AmountError(f"{text[:100]!r} is not an age; expected a number with s, m, h, d or w, e.g. 30d")
    return float(found[1]) * _AGES[found[2]]


def parse_wait(text: str) -> float:
    """Return the seconds of ``10m``, ``90s``, or of ``0``. Raises AmountError."""
    if text.strip() == "0":
        return 0.0
    try:
        return parse_age(text)
    except AmountError as error:
        raise AmountError(f"{text[:100]!r} is not a time; expected a number with s, m, h, d or w, e.g. 10m") from error


def show_wait(seconds: float) -> str:
    """Return a time as text: ``45 s``, ``10 min``, ``1.5 h``."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{round(seconds / unit, 1):g} {name}"
    return f"{seconds:.3g} s"


def show_size(size: int) -> str:
    """Return a size in bytes as text: ``1.5 MiB``."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B"


def show_count(number: int, noun: str) -> str:
    """Return a number of things as text: ``1 file``, ``1,200 files``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def show_share(part: float, whole: float) -> str:
    """Return a share as text: ``67%``; below half a percent ``0%``, also of nothing."""
    return f"{round(100 * part / whole) if whole else 0}%"


def show_tokens(tokens: int) -> str:
    """Return a number of tokens as text: ``999``, ``1.2k``, ``182k``."""
    return str(tokens) if tokens < 1000 else f"{tokens / 1000:.1f}k" if tokens < 100_000 else f"{tokens // 1000}k"
