"""Edits as models write them: a block of a real file, changed, and repeated with one kind of mistake.

Each case has the bytes that the file must have afterwards, or None if nothing may be changed. The cases of a seed are
always the same for the same files.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

MINIMUM_BLOCK_LINES = 3
MAXIMUM_BLOCK_LINES = 14


@dataclass(frozen=True, slots=True)
class EditCase:
    """An edit of a model: `intended` is the text of the file afterwards, None if the edit must be refused."""

    kind: str
    file: str
    text: str
    old: str
    new: str
    intended: str | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a block without its newline; the edit keeps the `number` of lines that it does not make."""

    number: int
    text: str


Mutation: TypeAlias = Callable[[Sequence[Line], random.Random], "Callable[[Sequence[Line]], str] | None"]
"""Chooses the mistake for a block; the function that makes it in the old and in the new block, None if it cannot."""


def edit_cases(files: Sequence[Path], count: int, seed: int) -> Iterator[EditCase]:
    """Yield `count` cases of each kind."""
    chance = random.Random(seed)  # noqa: S311 - a seed repeats the cases
    texts = [(str(file), text) for file in files if (text := _text(file)) is not None]
    for kind, mutation in KINDS.items():
        made = tries = 0
        while made < count:
            tries += 1
            if tries > 400 * count:
                raise RuntimeError(f"the files have no {count} blocks for {kind}")
            case = _case(kind, mutation, *chance.choice(texts), chance, is_clean=made % 2 == 1)
            if case is not None:
                made += 1
                yield case


def refused_cases(files: Sequence[Path], count: int, seed: int) -> Iterator[EditCase]:
    """Yield `count` edits that must be refused: half of them absent, half with two places that are equally near."""
    chance = random.Random(seed)  # noqa: S311 - a seed repeats the cases
    texts = [(str(file), text) for file in files if (text := _text(file)) is not None]
    made = 0
    while made < count:
        name, text = chance.choice(texts)
        case = (_absent, _halved, _ambiguous_space, _ambiguous_word)[made % 4](name, text, texts, chance)
        if case is not None:
            made += 1
            yield case


def _text(file: Path) -> str | None:
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if 2_000 < len(text) < 200_000 and "\r" not in text else None


def _block(text: str, chance: random.Random) -> tuple[int, int, list[Line]] | None:
    """Return a unique block of whole lines with its offsets; neither its first nor its last line is blank."""
    lines = text.split("\n")
    size = chance.randint(MINIMUM_BLOCK_LINES, MAXIMUM_BLOCK_LINES)
    if len(lines) <= size + 2:
        return None
    first = chance.randrange(len(lines) - size - 1)
    block = lines[first : first + size]
    if not block[0].strip() or not block[-1].strip() or sum(map(len, block)) > 2_000 or sum(map(len, block)) < 60:
        return None
    start = sum(len(line) + 1 for line in lines[:first])
    joined = "\n".join(block)
    words = re.findall(r"\w+|[^\w\s]", joined)
    if text.count(joined) != 1 or len(set(words)) < 10:
        return None
    return start, start + len(joined), [Line(index, line) for index, line in enumerate(block)]


def _edited(block: Sequence[Line], chance: random.Random, kept: set[int]) -> list[Line] | None:
    """Return the block with a line changed, added, removed or replaced by two; not one of `kept`."""
    able = [line for line in block if line.number not in kept and len(line.text.strip()) > 4]
    if not able:
        return None
    target = chance.choice(able)
    indentation = target.text[: len(target.text) - len(target.text.lstrip())]
    words = re.findall(r"[A-Za-z_]\w{2,}", target.text)
    way = chance.randrange(4)
    result: list[Line] = []
    for line in block:
        if line is not target:
            result.append(line)
        elif way == 0 and words:
            result.append(Line(line.number, line.text.replace(chance.choice(words), "renamed_value", 1)))
        elif way == 1:
            result += [line, Line(-1, f"{indentation}inserted_call(value, 2)")]
        elif way == 2 and len(block) > 3:
            continue
        else:
            result += [Line(-1, f"{indentation}first_new(value)"), Line(-2, f"{indentation}second_new(other)")]
    return result if [line.text for line in result] != [line.text for line in block] else None


def _case(
    kind: str, mutation: Mutation, name: str, text: str, chance: random.Random, *, is_clean: bool
) -> EditCase | None:
    found = _block(text, chance)
    if found is None:
        return None
    start, end, block = found
    mutate = mutation(block, chance)
    if mutate is None:
        return None
    plain = "\n".join(line.text for line in block)
    old = mutate(block)
    if kind != "exact" and old == plain:
        return None
    touched = {line.number for line in block if mutate([line]) != line.text} if kind in LOCAL else set[int]()
    if kind == "joined_lines":
        touched = set(range(len(block))) - {line.number for line in block if line.text and line.text in old.split("\n")}
    edited = _edited(block, chance, touched)
    if edited is None:
        return None
    intended = "\n".join(line.text for line in edited)
    new = intended if is_clean and kind not in ALWAYS_BOTH else mutate(edited)
    if kind != "exact" and old in text:
        return None
    return EditCase(kind, name, text, old, new, text[:start] + intended + text[end:])


LOCAL = frozenset({"inner_indent", "op_spacing", "word_in_comment"})
"""Kinds whose mistake is in one line, which the edit leaves alone."""
ALWAYS_BOTH = frozenset({"over_escaped", "trailing_nl"})
"""Kinds that concern the whole call, so that the new text has the mistake as well."""


def _each(change: Callable[[str], str]) -> Mutation:
    return lambda _block, _chance: lambda lines: "\n".join(change(line.text) for line in lines)


def _whole(change: Callable[[str], str]) -> Mutation:
    return lambda _block, _chance: lambda lines: change("\n".join(line.text for line in lines))


def _in_one(
    block: Sequence[Line],
    chance: random.Random,
    change: Callable[[str, random.Random], str | None],
) -> Callable[[Sequence[Line]], str] | None:
    """Return the function that changes one line of the block in a way that is chosen once."""
    order = list(block)
    chance.shuffle(order)
    for line in order:
        changed = change(line.text, chance)
        if changed is not None and changed != line.text:
            return lambda lines: "\n".join(
                changed if item.number == line.number and item.text == line.text else item.text for item in lines
            )
    return None


def _exact(_block: Sequence[Line], _chance: random.Random) -> Callable[[Sequence[Line]], str]:
    return lambda lines: "\n".join(line.text for line in lines)


def _shifted(block: Sequence[Line], _chance: random.Random) -> Callable[[Sequence[Line]], str]:
    more = "\t" if any(line.text.startswith("\t") for line in block) else "    "
    return lambda lines: "\n".join(more + line.text if line.text.strip() else line.text for line in lines)


def _dedented(block: Sequence[Line], _chance: random.Random) -> Callable[[Sequence[Line]], str] | None:
    widths = [len(line.text) - len(line.text.lstrip()) for line in block if line.text.strip()]
    least = min(widths)
    return (lambda lines: "\n".join(line.text[least:] for line in lines)) if least else None


def _inner_indent(block: Sequence[Line], chance: random.Random) -> Callable[[Sequence[Line]], str] | None:
    def change(text: str, chance: random.Random) -> str | None:
        if not text.strip():
            return None
        more = chance.choice((" ", "  ", "    "))
        return more + text if chance.random() < 0.5 or not text.startswith(more) else text[len(more) :]

    return _in_one(block[1:], chance, change)


def _tabs(block: Sequence[Line], _chance: random.Random) -> Callable[[Sequence[Line]], str] | None:
    def change(text: str) -> str:
        bare = text.lstrip(" \t")
        lead = text[: len(text) - len(bare)]
        return lead.replace("\t", "    ") + bare if "\t" in lead else lead.replace("    ", "\t") + bare

    return lambda lines: "\n".join(change(line.text) for line in lines)


def _blank_missing(block: Sequence[Line], _chance: random.Random) -> Callable[[Sequence[Line]], str] | None:
    if all(line.text.strip() for line in block):
        return None
    return lambda lines: "\n".join(line.text for line in lines if line.text.strip())


def _blank_extra(block: Sequence[Line], chance: random.Random) -> Callable[[Sequence[Line]], str]:
    after = chance.choice(block[:-1])
    return lambda lines: "\n".join(line.text + "\n" * (line.number == after.number) for line in lines)


def _op_spacing(block: Sequence[Line], chance: random.Random) -> Callable[[Sequence[Line]], str] | None:
    def change(text: str, chance: random.Random) -> str | None:
        operators = list(re.finditer(r" ?([-+*/=<>,(){}:]) ?", text.strip()))
        if not operators:
            return None
        lead = text[: len(text) - len(text.lstrip())]
        found = chance.choice(operators)
        bare = text.strip()
        spaced = f" {found[1]} " if found[0] == found[1] else found[1]
        return (lead + bare[: found.start()] + spaced + bare[found.end() :]).rstrip()

    return _in_one(block, chance, change)


def _quotes(text: str) -> str:
    return text.translate(str.maketrans("\"'", "'\""))


def _word_in_comment(block: Sequence[Line], chance: random.Random) -> Callable[[Sequence[Line]], str] | None:
    def change(text: str, chance: random.Random) -> str | None:
        comment = re.search(r"(?:#|//|\*|--) .*$", text)
        if comment is None:
            return None
        words = re.findall(r"[A-Za-z]{3,}", comment[0])
        if not words:
            return None
        word = chance.choice(words)
        return text[: comment.start()] + comment[0].replace(word, chance.choice(("some", "other", "value")), 1)

    return _in_one(block, chance, change)


def _joined_lines(block: Sequence[Line], chance: random.Random) -> Callable[[Sequence[Line]], str] | None:
    pairs = [(first, second) for first, second in pairwise(block) if first.text.strip() and second.text.strip()]
    if not pairs:
        return None
    first, second = chance.choice(pairs)
    whole = f"{first.text}\n{second.text}"
    return lambda lines: "\n".join(line.text for line in lines).replace(
        whole, f"{first.text.rstrip()} {second.text.strip()}", 1
    )


def _over_escaped(block: Sequence[Line], chance: random.Random) -> Callable[[Sequence[Line]], str] | None:
    way = chance.randrange(3)
    if way == 0:
        return lambda lines: json.dumps("\n".join(line.text for line in lines), ensure_ascii=False)[1:-1]
    if way == 1:
        return lambda lines: re.sub(r"([\"'])", r"\\\1", "\n".join(line.text for line in lines))
    return lambda lines: "\n".join(line.text for line in lines).replace("\n", "\\n")


def _unicode(text: str) -> str:
    text = re.sub(r"(^|[\s(\[{])\"", "\\1\u201c", text)
    return text.replace('"', "\u201d").replace("'", "\u2019").replace(" - ", " \u2013 ").replace("...", "\u2026")


KINDS: dict[str, Mutation] = {
    "exact": _exact,
    "trailing_ws": _each(lambda text: text + "  " if len(text) % 3 else text + "\t"),
    "shift_all": _shifted,
    "dedent_all": _dedented,
    "inner_indent": _inner_indent,
    "tabs": _tabs,
    "blank_missing": _blank_missing,
    "blank_extra": _blank_extra,
    "op_spacing": _op_spacing,
    "quotes": _whole(_quotes),
    "word_in_comment": _word_in_comment,
    "joined_lines": _joined_lines,
    "over_escaped": _over_escaped,
    "unicode_punct": _whole(_unicode),
    "trailing_nl": _whole(lambda text: text + "\n\n"),
}
"""The fifteen kinds of mistake."""


# --- Edits that must be refused -------------------------------------------------------------------------------------

Texts: TypeAlias = Sequence[tuple[str, str]]


def _absent(name: str, text: str, texts: Texts, chance: random.Random) -> EditCase | None:
    """Return an edit of a block of another file."""
    other, other_text = chance.choice(texts)
    found = _block(other_text, chance)
    if found is None or other == name:
        return None
    old = "\n".join(line.text for line in found[2])
    bare = re.sub(r"\s+", "", old)
    if bare in re.sub(r"\s+", "", text):
        return None
    return EditCase("absent", name, text, old, old + "\nmore()", None)


def _halved(name: str, text: str, texts: Texts, chance: random.Random) -> EditCase | None:
    """Return an edit of a block of which every second line is something else."""
    found, other = _block(text, chance), _block(chance.choice(texts)[1], chance)
    if found is None or other is None:
        return None
    strange = [line.text for line in other[2]]
    lines = [line.text if line.number % 2 else strange[line.number % len(strange)] for line in found[2]]
    old = "\n".join(lines)
    return (
        None
        if old in text or not any(line.strip() for line in lines)
        else EditCase("absent", name, text, old, old + "\nmore()", None)
    )


def _ambiguous_space(name: str, text: str, _texts: Texts, chance: random.Random) -> EditCase | None:
    """Return an edit of a block that the file has twice, with other spacing."""
    found = _block(text, chance)
    if found is None:
        return None
    start, end, block = found
    mutate = _op_spacing(block, chance)
    if mutate is None:
        return None
    whole = text[start:end]
    twice = text[:end] + "\n" + text[end:].lstrip("\n") + "\n" + whole + "\n"
    return EditCase("two places", name, twice, mutate(block), "changed()", None)


def _ambiguous_word(name: str, text: str, _texts: Texts, chance: random.Random) -> EditCase | None:
    """Return an edit of a block that the file has twice, each time with a word where the edit has a third."""
    found = _block(text, chance)
    if found is None:
        return None
    start, end, _ = found
    whole = text[start:end]
    words = [word for word in set(re.findall(r"[A-Za-z]{4,}", whole)) if whole.count(word) == 1]
    if not words:
        return None
    word = chance.choice(sorted(words))
    one, two, three = (whole.replace(word, other) for other in ("first", "second", "third"))
    return EditCase("two places", name, f"{text[:start]}{one}{text[end:]}\n{two}\n", three, three + "\nmore()", None)
