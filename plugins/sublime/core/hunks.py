"""The hunks of a review as units that are accepted or rejected. Python 3.8 and the standard library only. Pure.

A rejected hunk has the lines of the file on disk, an accepted one those of the proposal.
"""

from difflib import SequenceMatcher


def lines_of(text):
    """Return the lines of a text, each with its line feed; the last one may have none."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def replacements(text, source, first, last):
    """Return what makes the hunks on lines `first` to `last` of a text (from 0) those of `source`, the last one first.

    Each is (start, end, new text) with positions in the text.
    """
    lines, others = lines_of(text), lines_of(source)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    opcodes = SequenceMatcher(None, lines, others, autojunk=False).get_opcodes()
    hunks = [opcode[1:] for opcode in opcodes if opcode[0] != "equal"]
    return [
        (offsets[start], offsets[end], "".join(others[other_start:other_end]))
        for start, end, other_start, other_end in reversed(touched(hunks, first, last))
    ]


def touched(hunks, first, last):
    """Return those of the hunks that lines touch.

    Lines that are missing are touched by both neighbours, unless another hunk has the line itself.
    """
    exact = [hunk for hunk in hunks if hunk[0] < hunk[1] and hunk[0] <= last and first < hunk[1]]
    near = [hunk for hunk in hunks if hunk[0] == hunk[1] and first <= hunk[0] <= last + 1]
    if first < last:
        return sorted(exact + near)
    return exact or near
