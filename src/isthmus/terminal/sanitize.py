"""Makes untrusted text safe for a terminal or a log, so that it cannot control them.

Model text, tool output, file contents and file names all pass through here before they are printed. ``visible``
makes hidden characters visible (for text that a user reviews), ``without_escapes`` removes terminal sequences (for the
output of programs, and for text that other programs read).
"""

from isthmus.text.visible import ESCAPE_SEQUENCES, SUSPICIOUS, is_surrogate, visible, visible_line

__all__ = ["output_lines", "visible", "visible_line", "without_escapes"]


def without_escapes(text: str) -> str:
    """Return the text without terminal sequences and other control characters; a CR alone becomes a newline."""
    if not SUSPICIOUS.search(text):
        return text
    plain = ESCAPE_SEQUENCES.sub("", text.replace("\r\n", "\n")).replace("\r", "\n")
    return SUSPICIOUS.sub(lambda found: "\ufffd" if is_surrogate(found[0]) else "", plain)


def output_lines(text: str) -> list[str]:
    """Return the lines of a program's output as a terminal shows them: of a line redrawn with CR the last version."""
    versions = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    lines = without_escapes("\n".join(versions)).expandtabs(8).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return lines
