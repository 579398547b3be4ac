"""Turns a model's thinking into an AgentThought with subject and description (development-tool extension)."""

import re

from isthmus.development_tool import AgentThought

_BOLD_SUBJECT = re.compile(r"\s*\*\*(?P<subject>[^*\n]+)\*\*\s*(?P<description>.*)", re.DOTALL)
_SUBJECT_LENGTH = 80


def thought_of(text: str) -> AgentThought:
    """Return a thought from ``**Subject** description`` (Gemini); otherwise the shortened first line is the subject."""
    if found := _BOLD_SUBJECT.fullmatch(text):
        return AgentThought(found["subject"].strip(), found["description"].strip())
    whole = text.strip()
    first, _, _ = whole.partition("\n")
    subject = first if len(first) <= _SUBJECT_LENGTH else first[: _SUBJECT_LENGTH - 1].rstrip() + "…"
    return AgentThought(subject, whole)
