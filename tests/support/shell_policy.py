"""The shell policy compared with bash: lines that run without a question, and their calls without permission."""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from support.shell_judge import Report, Run

_PROGRAMS = "ls,echo,cat,find,printf,test,grep,sort,head,wc,[,[[,true,false,:,cd,pwd,./run.sh,uniq,wait,unset"
GRANTED: frozenset[tuple[str, ...]] = frozenset({("git", "status"), *((name,) for name in _PROGRAMS.split(","))})
"""Prefixes that the user allowed permanently. `unset` evaluates its arguments, so no line with it may run."""
_FIND_ACTIONS = re.compile(r"-delete|-exec|-execdir|-ok|-okdir|-fls|-fprint|-fprint0|-fprintf")
_SORT_SHORT = re.compile(r"-[A-RU-Za-jl-su-z]*?[oT].*")
"""-o or -T of sort, also in a bundle, but not in the value of -k, -S or -t."""
_SORT_LONG = ("--output", "--temporary-directory", "--compress-program")


class Command(Protocol):
    """A simple command of an analysis."""

    @property
    def words(self) -> Sequence[str]:
        """The program and its arguments."""
        ...


class Analysis(Protocol):
    """The interface that every version of the policy has."""

    @property
    def commands(self) -> Sequence[Command]:
        """The simple commands."""
        ...

    @property
    def writes_files(self) -> bool:
        """Whether a redirection writes."""
        ...


def is_allowed(analysis: Analysis | None) -> bool:
    """Return whether a line runs without a question if the user has allowed GRANTED."""
    return (
        analysis is not None
        and bool(analysis.commands)
        and not analysis.writes_files
        and not getattr(analysis, "asked", ())
        and all(getattr(command, "is_wrapper", False) or _is_granted(command.words) for command in analysis.commands)
    )


def bypass(report: Report) -> str:
    """Return the effect of a line that the user did not allow, or "". The kind comes first, for counting."""
    for run in report.runs:
        if problem := _problem(run):
            return problem
    if report.changed:
        return f"file: {', '.join(report.changed)}"
    return "network" if report.has_connected else ""


def difference(analysis: Analysis, report: Report) -> str:
    """Return a call with other words than the analysed ones, or "". Words that bash expands may be any."""
    for run in report.runs:
        if not any(_may_become(command, run.words) for command in analysis.commands):
            return f"words: {run.words!r}"
    return ""


def _may_become(command: Command, words: Sequence[str]) -> bool:
    is_certain: Iterable[bool] = getattr(command, "certain", ())
    for number, certain in enumerate(is_certain):
        if not certain:
            return tuple(words[:number]) == tuple(command.words[:number])
    return tuple(words) == tuple(command.words)


def _is_granted(words: Sequence[str]) -> bool:
    return any(tuple(words[: len(prefix)]) == prefix for prefix in GRANTED)


def _problem(run: Run) -> str:
    name = run.path.rpartition("/")[2]
    if name == "notfound":
        return f"program: {' '.join(run.words[1:])!r}"
    if not _is_granted(run.words) or run.path not in (f"/judge/bin/{run.words[0]}", "./run.sh"):
        return f"program: {run.path} {run.words!r}"
    if name == "find" and any(_FIND_ACTIONS.fullmatch(word) for word in run.words):
        return f"find: {run.words!r}"
    before = run.words[: run.words.index("--")] if "--" in run.words else run.words
    if name == "sort" and any(_sort_writes(word) for word in before[1:]):
        return f"sort: {run.words!r}"
    if name == "uniq" and sum(_is_operand(run.words, number) for number in range(1, len(run.words))) > 1:
        return f"uniq: {run.words!r}"
    return ""


def _is_operand(words: Sequence[str], number: int) -> bool:
    return not words[number].startswith("-") and words[number - 1] not in ("-f", "-s", "-w")


def _sort_writes(word: str) -> bool:
    name = word.partition("=")[0]
    if name.startswith("--"):
        return len(name) > 2 and any(option.startswith(name) for option in _SORT_LONG)
    return _SORT_SHORT.fullmatch(word) is not None
