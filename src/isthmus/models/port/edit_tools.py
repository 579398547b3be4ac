"""The tools with which a model edits files, by its family: those that it is trained to use.

A model that is offered several ways to edit mixes them, so that it gets one. Sources: OpenAI's guides to GPT-4.1 and to
custom tools, and the table of models of Codex, for patches; the tools of Claude Code and Gemini CLI for strings.
"""

import re
from collections.abc import Collection

from isthmus.record import record


@record
class EditTools:
    """The tools for edits of one family: ``change`` is the name of the one that changes a file, ``create`` a new one.

    ``is_free_form``: the family knows the tool as a custom one, whose input is a text and not JSON.
    """

    change: str
    create: str
    is_free_form: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Names of both tools."""
        return frozenset({self.change, self.create})

    @property
    def hidden(self) -> frozenset[str]:
        """Names of the other tools for edits, which the family is not offered."""
        return ALL_EDIT_TOOLS - self.names

    def among(self, names: Collection[str]) -> "EditTools":
        """Return the tools that can be offered where only these names may be used; the family's own, if any of them."""
        if self.names & set(names):
            return self
        other = PATCHES_AS_JSON if self == STRINGS else STRINGS
        return other if other.names & set(names) else self


STRINGS = EditTools("replace", "write_file")
"""A string is replaced with another."""
PATCHES = EditTools("apply_patch", "apply_patch", is_free_form=True)
"""Patches as raw text."""
PATCHES_AS_JSON = EditTools("apply_patch", "apply_patch")
"""Patches as an argument in JSON."""
ALL_EDIT_TOOLS = STRINGS.names | PATCHES.names
"""Names of all tools for edits of text files."""

_FAMILIES = (
    (re.compile(r"gpt-(?:[5-9]|\d\d)", re.IGNORECASE), PATCHES),
    (re.compile(r"gpt-4\.1|gpt-oss|o\d|codex", re.IGNORECASE), PATCHES_AS_JSON),
)
"""Beginnings of the names of models, without the name of a provider before a slash."""


def edit_tools_of(model_name: str) -> EditTools:
    """Return the tools for edits of a model by its name, which may have a provider before a slash."""
    name = model_name.rpartition("/")[2]
    return next((tools for beginning, tools in _FAMILIES if beginning.match(name)), STRINGS)
