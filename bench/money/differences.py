"""The first place in which a request differs from what its cache could know: the request before it."""

from dataclasses import dataclass

from bench.money.prompt import BYTES_PER_TOKEN, Prompt

EXCERPT = 60
"""Number of bytes that are shown of each side."""
KEPT = 20
"""Number of bytes that are shown before the difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two requests, one after the other, where the second does not begin with all of the first one.

    ``lost`` is the number of tokens of the first one behind the place; ``old`` and ``new`` are excerpts there.
    """

    step: int
    place: str
    lost: int
    old: str
    new: str


def first_difference(step: int, before: Prompt, after: Prompt) -> Difference | None:
    """Return where a request stops to repeat the one before; None if it repeats all of it."""
    if before.model != after.model:
        return Difference(step, "model", before.size, before.model, after.model)
    also = "" if before.key == after.key else ", and the key of the cache"
    for number, block in enumerate(before.blocks):
        other = after.blocks[number] if number < len(after.blocks) else None
        if other is not None and other.data == block.data:
            continue
        old, new = block.data, b"" if other is None else other.data
        offset = _common(old, new)
        begin = max(0, offset - KEPT)
        rest = len(old) - offset + sum(len(each.data) for each in before.blocks[number + 1 :])
        return Difference(
            step,
            f"{block.place} byte {offset}{also}",
            rest // BYTES_PER_TOKEN,
            _excerpt(old[begin:]),
            _excerpt(new[begin:]) if other is not None else "(the request ends)",
        )
    return Difference(step, "the key of the cache", before.size, before.key, after.key) if also else None


def _common(old: bytes, new: bytes) -> int:
    """Return the number of bytes with which both begin."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))


def _excerpt(data: bytes) -> str:
    return data[:EXCERPT].decode("utf-8", "replace")
