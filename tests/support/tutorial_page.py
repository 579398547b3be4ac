"""Steps of a tutorial or a guide, and the output that it promises, read from its Markdown.

A page is read from its top to the heading "Where to go from here":

- a block of ``sh`` is typed into the shell of the terminal at hand, line by line;
- a block of ``text`` is what that terminal then shows, perhaps among other lines: ``...`` stands for anything, alone
  in a line for any number of lines; ``TASK_ID`` stands for an id, in later commands for the one that was shown;
- a block without a language is typed into the program that runs, with Enter;
- a block of ``diff`` changes the file after ``+++``: its lines with a space or ``-`` stand there once, in
  one piece, and become those with a space or ``+``; ``@@`` begins another place; ``+`` alone makes a new file;
- a block of ``python``, ``toml`` or ``json`` quotes a file below ``examples/``; ``...`` stands for any lines;
- in prose, "in a second terminal" and the like choose the terminal of the sentence and what follows; "press `1`" is a
  key, "leave it with Ctrl-D" and "stop it with Ctrl-C" are keys that end a program, "type `:w`" is a text with Enter,
  and "answer `y`" the same for a program that reads lines.
  A sentence that begins with "If" is not followed.

Another sentence that tells the reader to press, type, enter, leave or stop something is a mistake of the page.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

END = "## Where to go from here"
_ORDINALS = {"first": 1, "second": 2, "third": 3}
_KEY = r"(?:`[^`]+`|Ctrl-[A-Z\\])"
_KEYS = rf"{_KEY}(?:(?:, | and | ){_KEY})*"
_INSTRUCTION = re.compile(
    rf"\bin (?:a|the) (?P<ordinal>{'|'.join(_ORDINALS)}) terminal\b"
    rf"|\bpress (?P<keys>{_KEYS})"
    rf"|\b(?:leave|stop) [^.:`]*? with (?P<ending>{_KEYS})"
    r"|\btype `(?P<typed>[^`]+)`"
    r"|\banswer `(?P<answered>[^`]+)`"
    r"|\b(?P<prompt>enter this prompt:)"
    r"|\b(?P<unknown>(?:press|type|enter|leave|stop)\b)",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_PREREQUISITE = re.compile(r"\]\((?P<page>[\w-]+\.md)#(?P<anchor>[\w-]+)\)")


class PageError(Exception):
    """A mistake of a page; the text begins with its name and line."""


@dataclass(frozen=True)
class Step:
    """Something that the reader does or sees; ``place`` is the page and line where it is written."""

    place: str


@dataclass(frozen=True)
class InTerminal(Step):
    """Go to a terminal, the first of which has the number 1; it is opened if there is none."""

    number: int


@dataclass(frozen=True)
class RunCommands(Step):
    """Type these lines into the shell."""

    lines: Sequence[str]


@dataclass(frozen=True)
class TypeText(Step):
    """Type a text and Enter."""

    text: str


@dataclass(frozen=True)
class AnswerLine(Step):
    """Type a text and Enter where a program reads lines, without seeing single keys."""

    text: str


@dataclass(frozen=True)
class PressKeys(Step):
    """Press keys, as a terminal sends them."""

    keys: str


@dataclass(frozen=True)
class EndProgram(Step):
    """Press keys one after another, which end the program that runs."""

    keys: Sequence[str]


@dataclass(frozen=True)
class See(Step):
    """Find these lines in the terminal."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Quote(Step):
    """Find these lines in a file of the examples."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Change:
    """Lines of a file, and those in their place."""

    old: str
    new: str


@dataclass(frozen=True)
class ChangeFile(Step):
    """Change a file, or make it if it is to have no old lines."""

    path: str
    changes: Sequence[Change]


AnyStep: TypeAlias = (
    InTerminal | RunCommands | TypeText | AnswerLine | PressKeys | EndProgram | See | Quote | ChangeFile
)


def read_page(name: str, text: str) -> Sequence[AnyStep]:
    """Return the steps of a page in order.

    Raises:
        PageError: an instruction or a block is not understood.
    """
    text = text.partition(END)[0]
    steps: list[AnyStep] = []
    at, asks_prompt = 0, False
    for block in [*_BLOCK.finditer(text), None]:
        prose = text[at : block.start() if block is not None else len(text)]
        found = list(_prose_steps(name, text, at, prose))
        asks_prompt = "prompt" in found
        steps += [step for step in found if not isinstance(step, str)]
        if block is None:
            break
        at = block.end()
        steps.append(_block_step(_place(name, text, block.start()), block, asks_prompt=asks_prompt))
        asks_prompt = False
    return steps


def prerequisites(text: str) -> Sequence[tuple[str, str]]:
    """Return the sections that the introduction of a page refers to, as pages and anchors."""
    introduction = text.partition("\n## ")[0]
    return [(found["page"], found["anchor"]) for found in _PREREQUISITE.finditer(introduction)]


def section(text: str, anchor: str) -> str:
    """Return the section of a page whose heading has this anchor, after as many empty lines as come before it."""
    for heading in re.finditer(r"^## (.+)$", text, re.MULTILINE):
        if re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-") == anchor:
            before, (body, *_) = text[: heading.start()], text[heading.end() :].split("\n## ")
            return "\n" * before.count("\n") + body
    raise PageError(f"there is no section {anchor}")


def _prose_steps(name: str, text: str, at: int, prose: str) -> "Iterator[AnyStep | str]":
    """Yield the steps of prose, and "prompt" where a prompt is to follow. The terminal of a sentence comes first."""
    flat = re.sub(r"\s", " ", prose)
    for start, sentence in _sentences(flat):
        steps: list[AnyStep | str] = []
        for found in _INSTRUCTION.finditer(sentence):
            steps += _steps_of(found, _place(name, text, at + start + found.start()), sentence)
        yield from sorted(steps, key=lambda step: not isinstance(step, InTerminal))


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence with its place, but those that begin with "If"."""
    begin = 0
    for end in [*(found.end() for found in re.finditer(r"[.:!?]\)? +(?=[A-Z(])|  +", text)), len(text)]:
        sentence = text[begin:end]
        if not sentence.lstrip("( ").startswith("If "):
            yield begin, sentence
        begin = end


def _steps_of(found: re.Match[str], place: str, sentence: str) -> "Iterator[AnyStep | str]":
    if ordinal := found["ordinal"]:
        yield InTerminal(place, _ORDINALS[ordinal.lower()])
    elif keys := found["keys"]:
        yield from (PressKeys(place, _key(key)) for key in re.findall(_KEY, keys))
    elif ending := found["ending"]:
        yield EndProgram(place, [_key(key) for key in re.findall(_KEY, ending)])
    elif typed := found["typed"]:
        yield TypeText(place, typed)
    elif answered := found["answered"]:
        yield AnswerLine(place, answered)
    elif found["prompt"]:
        yield "prompt"
    else:
        raise PageError(f"{place}: this instruction is not understood: {sentence[found.start() :][:60]}")


def _key(written: str) -> str:
    if written.startswith("Ctrl-"):
        return chr(ord(written[-1]) & 0x1F)
    return written.strip("`")


def _block_step(place: str, block: re.Match[str], *, asks_prompt: bool) -> AnyStep:
    lines = textwrap.dedent(block["body"]).splitlines()
    match block["language"]:
        case "sh" if not asks_prompt:
            return RunCommands(place, lines)
        case "text" if not asks_prompt:
            return See(place, lines)
        case "diff" if not asks_prompt:
            return _change_step(place, lines)
        case "python" | "toml" | "json" if not asks_prompt:
            return Quote(place, lines)
        case "" if asks_prompt and len(lines) == 1:
            return TypeText(place, lines[0])
        case "":
            raise PageError(f'{place}: expected one line after "Enter this prompt:", or a block of sh or text')
        case language if not asks_prompt:
            raise PageError(f"{place}: expected a block of sh, text, diff or a quotation, not of {language}")
        case _:
            raise PageError(f"{place}: expected the prompt, in a block without a language")


def _change_step(place: str, lines: Sequence[str]) -> ChangeFile:
    first, *rest = lines
    if not first.startswith("+++ "):
        raise PageError(f"{place}: expected the file in the first line of the diff, as +++ PATH")
    hunks: list[list[str]] = [[]]
    for line in rest:
        if line.startswith("@@"):
            hunks.append([])
        elif line[:1] in {" ", "+", "-", ""}:
            hunks[-1].append(line or " ")
        else:
            raise PageError(f"{place}: expected a line that begins with a space, + or -: {line}")
    changes = [
        Change(*("".join(f"{line[1:]}\n" for line in hunk if line[0] in signs) for signs in (" -", " +")))
        for hunk in hunks
        if hunk
    ]
    return ChangeFile(place, first.removeprefix("+++ "), changes)


def _place(name: str, text: str, at: int) -> str:
    return f"{name}:{text.count(chr(10), 0, at) + 1}"
