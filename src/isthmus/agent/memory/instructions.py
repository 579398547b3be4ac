"""Instructions for the agent as data: the content of its files.

Not here: finding the files, see :mod:`isthmus.agent.memory.reading`; reading them again, see
:mod:`isthmus.agent.memory.memory`.
"""

from pathlib import Path

from isthmus.record import record

MARKDOWN = (".md", ".mdx", ".markdown")
"""Suffixes read from the user's own folder, which also holds settings, keys and tokens."""


def is_markdown(name: str) -> bool:
    """Return whether a file of the user's own folder may hold instructions."""
    return name.lower().endswith(MARKDOWN)


@record
class InstructionFile:
    """One file of instructions. ``shown`` is its displayed name; ``text`` includes its imports."""

    path: Path
    shown: str
    text: str
    imports: tuple[Path, ...] = ()


@record
class Instructions:
    """Content of the instruction files, most general first; ``problems`` explain what was left out or cut."""

    files: tuple[InstructionFile, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text for the model; empty without instructions."""
        return "\n\n".join(text for _, text in self.parts)

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The text for the model in parts: the displayed name of each file with its text, and the problems."""
        files = (
            (
                file.shown,
                f"--- Context from: {file.shown} ---\n{file.text.strip()}\n--- End of Context from: {file.shown} ---",
            )
            for file in self.files
        )
        notes = "\n\n".join(f"[Note: {problem}]" for problem in self.problems)
        return (*files, *((("what was left out", notes),) if notes else ()))
