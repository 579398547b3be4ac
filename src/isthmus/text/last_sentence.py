"""The last sentence of a message, in one line: what an agent says that it wants before it makes a call."""

import json
import re

from isthmus.text.visible import visible_prose, with_ellipsis

LONGEST_SENTENCE = 300
"""Maximum number of characters of a sentence."""
_READ = 4_000
"""Number of characters at the end of a message in which the sentence is looked for."""
_FENCED = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1[`~]*\s*$|\Z)", re.DOTALL | re.MULTILINE)
_MARKS = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+|\d{1,3}[.)]\s+)*")
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_TABLE = re.compile(r"^\s*\|.*\|\s*$")
_END = re.compile(
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bcf\.)(?<!\bvs\.)(?<=[.!?\u2026])[\"')\]\u201d\u2019]*\s+(?=[^\sa-z])"
    r"|(?<=[\u3002\uff01\uff1f])(?![\u201d\u2019\u300d\u300f\uff09])"
)


def last_sentence(message: str) -> str:
    """Return the last sentence of a message in Markdown, without its marks; empty if it ends in code, JSON or a table.

    Nothing hidden stays in it, and it has at most :data:`LONGEST_SENTENCE` characters.
    """
    if _is_json(message):
        return ""
    end = message.rstrip()[-_READ:]
    if _FENCED.sub("", end).rstrip() != end and end.endswith(("```", "~~~")):
        return ""
    blocks = [block for block in re.split(r"\n\s*\n", _FENCED.sub("\n\n", end)) if block.strip()]
    lines = blocks[-1].splitlines() if blocks else []
    if not lines or _TABLE.match(lines[-1]) or _is_json(blocks[-1]):
        return ""
    begin = max((at for at, line in enumerate(lines) if _MARKS.sub("", line) != line.lstrip()), default=0)
    text = " ".join([_MARKS.sub("", lines[begin]), *lines[begin + 1 :]])
    text = " ".join(visible_prose(_EMPHASIS.sub(r"\2", text)).split())
    sentences = [sentence for sentence in _END.split(text) if sentence and sentence.strip()]
    sentence = sentences[-1].strip().removesuffix(":").removesuffix("\uff1a").rstrip() if sentences else ""
    return with_ellipsis(sentence, LONGEST_SENTENCE)


def _is_json(text: str) -> bool:
    """Return whether a text is one object or array in JSON, as models say it that write their calls as text."""
    text = text.strip()
    if (text[:1], text[-1:]) not in (("{", "}"), ("[", "]")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
