"""Named arguments of a slash command, as typed: ``/poem --title="Gemini CLI" reverent``. Pure.

Words are split as in a POSIX shell, with both kinds of quotes and the backslash, but without variables, patterns or
comments. An argument is given as ``--name=value``, ``--name value`` or by its position; every word after ``--`` is
given by its position, even if it looks like a name.

Words without a name become the values of the arguments that have none yet, in declared order; if there are too few
words, required arguments come first. Surplus words are added to the value of the last argument, joined by spaces. Not
here: the commands, see `isthmus.slash_commands.tree`.
"""

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from isthmus.development_tool import SlashCommandArgument
from isthmus.errors import IsthmusError
from isthmus.record import record

_BLANK = " \t\r\n"
_ESCAPED_IN_QUOTES = '$`"\\'
"""Characters that a backslash makes literal inside double quotes."""


class CommandArgumentError(IsthmusError):
    """Words that do not match the arguments; the text names them, with advice."""


@record
class ArgumentWord:
    """A word as split by a shell, and its offset in the text. ``open_quote`` is a quote that is not closed."""

    text: str
    start: int
    open_quote: str = ""


def shell_words(text: str) -> tuple[ArgumentWord, ...]:
    """Return the words of a text; only the last one can have an open quote."""
    words: list[ArgumentWord] = []
    at = 0
    while True:
        while at < len(text) and text[at] in _BLANK:
            at += 1
        if at >= len(text):
            return tuple(words)
        word, at = _word(text, at)
        words.append(word)


def _word(text: str, start: int) -> tuple[ArgumentWord, int]:
    pieces: list[str] = []
    quote = ""
    at = start
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == quote:
            quote = ""
        elif quote == "'":
            pieces.append(letter)
        elif letter == "\\" and at < len(text):
            escaped = text[at]
            at += 1
            if escaped == "\n":
                continue
            pieces.append(escaped if not quote or escaped in _ESCAPED_IN_QUOTES else letter + escaped)
        elif quote:
            pieces.append(letter)
        elif letter in "'\"":
            quote = letter
        elif letter in _BLANK:
            return ArgumentWord("".join(pieces), start), at - 1
        else:
            pieces.append(letter)
    return ArgumentWord("".join(pieces), start, quote), at


@dataclass(slots=True)
class _WordReader:
    """Reader that divides words into named and unnamed values."""

    arguments: Sequence[SlashCommandArgument]
    named: dict[str, str] = field(default_factory=dict[str, str])
    free: list[str] = field(default_factory=list[str])
    expects: str | None = None
    """Name of the argument whose value is the next word."""
    has_ended: bool = False
    """Whether ``--`` has been read."""

    def take(self, word: str) -> None:
        if self.expects is not None:
            name, self.expects = self.expects, None
            if word == "--" or self._option(word) is not None:
                raise CommandArgumentError(f"--{name} needs a value, but {word[:80]} follows; write --{name}=VALUE.")
            self.named[name] = word
        elif self.has_ended or not word.startswith("--"):
            self.free.append(word)
        elif word == "--":
            self.has_ended = True
        else:
            self._take_option(word)

    def _take_option(self, word: str) -> None:
        found = self._option(word)
        if found is None:
            raise CommandArgumentError(self._unknown(word))
        name, value = found
        if name in self.named:
            raise CommandArgumentError(f"--{name} is given twice.")
        if value is None:
            self.expects = name
        else:
            self.named[name] = value

    def _option(self, word: str) -> tuple[str, str | None] | None:
        # The longest name first: another name followed by "=" may be a prefix of it.
        for name in sorted((item.name for item in self.arguments), key=len, reverse=True):
            if word == f"--{name}":
                return name, None
            if word.startswith(f"--{name}="):
                return name, word[len(name) + 3 :]
        return None

    def _unknown(self, word: str) -> str:
        typed = word.partition("=")[0]
        known = {f"--{item.name}".casefold(): f"--{item.name}" for item in self.arguments}
        near = [known[name] for name in difflib.get_close_matches(typed.casefold(), known, n=3, cutoff=0.5)]
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        taken = f" It takes {', '.join(known.values())}." if known and not near else ""
        return (
            f"There is no argument {typed[:80]}.{meant}{taken} A value that begins with -- must follow a separate --."
        )

    def unfilled(self) -> list[SlashCommandArgument]:
        return [item for item in self.arguments if item.name not in self.named]


def read_arguments(text: str, arguments: Sequence[SlashCommandArgument]) -> dict[str, str]:
    """Return the values of the given arguments, in declared order.

    Raises:
        CommandArgumentError: a quote is not closed, a name is unknown or given twice, there are too many words, or a
            required argument is missing.
    """
    reading = _WordReader(arguments)
    for word in shell_words(text):
        if word.open_quote:
            raise CommandArgumentError(f"The quote {word.open_quote} is not closed: {text[word.start :].strip()[:80]}.")
        reading.take(word.text)
    if reading.expects is not None:
        raise CommandArgumentError(f"--{reading.expects} needs a value.")
    free, values = reading.free, dict(reading.named)
    targets = _by_place(reading.unfilled(), len(free))
    if free and not targets:
        what = "It takes no arguments" if not arguments else "All its arguments have a value already"
        raise CommandArgumentError(f"{what}; {' '.join(free)[:80]!r} is too much.")
    for place, item in enumerate(targets):
        is_last = place == len(targets) - 1
        values[item.name] = " ".join(free[place:]) if is_last else free[place]
    missing = [item.name for item in arguments if item.is_required and item.name not in values]
    if missing:
        listed = ", ".join(f"--{name}" for name in missing)
        raise CommandArgumentError(f"Missing required argument{'' if len(missing) == 1 else 's'}: {listed}.")
    return {item.name: values[item.name] for item in arguments if item.name in values}


def _by_place(unfilled: Sequence[SlashCommandArgument], words: int) -> list[SlashCommandArgument]:
    """Return the arguments to which this number of unnamed words applies, in order."""
    if words >= len(unfilled):
        return list(unfilled)
    first = [item for item in unfilled if item.is_required][:words]
    others = [item for item in unfilled if not item.is_required][: words - len(first)]
    return [item for item in unfilled if item in first or item in others]


def usage(name: str, arguments: Sequence[SlashCommandArgument]) -> str:
    """Return the usage of a command with named arguments, on one line."""
    shown = [f"--{item.name}=..." if item.is_required else f"[--{item.name}=...]" for item in arguments]
    return " ".join((f"Usage: /{name}", *shown))


@record
class ValuePlace:
    """Incomplete value of ``argument`` at the end of a text: it begins at ``start``, after ``before``.

    ``given`` contains the values of other arguments.
    """

    argument: str
    typed: str
    start: int
    before: str
    given: Mapping[str, str]

    def completed(self, value: str) -> str:
        """Return the text from ``start`` on with the complete value."""
        return self.before + shlex.quote(value)


@record
class NamePlace:
    """Incomplete name at the end of a text, from ``start`` on; ``names`` are its completions."""

    names: tuple[str, ...]
    start: int


def place_at_end(text: str, arguments: Sequence[SlashCommandArgument]) -> ValuePlace | NamePlace | None:
    """Return the name or value that is being typed at the end of a text; None if nothing matches."""
    words = shell_words(text)
    # A blank after the last word ends it, unless the blank is quoted or escaped.
    is_ended = not words or len(shell_words(f"{text}x")) > len(words)
    done, last = (words, ArgumentWord("", len(text))) if is_ended else (words[:-1], words[-1])
    reading = _WordReader(arguments)
    try:
        for word in done:
            reading.take(word.text)
    except CommandArgumentError:
        return None
    if reading.expects is not None:
        return ValuePlace(reading.expects, last.text, last.start, "", dict(reading.named))
    if last.text.startswith("--") and not reading.has_ended:
        name, equals, typed = last.text.partition("=")
        if equals:
            known = name[2:] in {item.name for item in reading.unfilled()}
            return ValuePlace(name[2:], typed, last.start, f"{name}=", dict(reading.named)) if known else None
        names = tuple(f"--{item.name}=" for item in reading.unfilled() if f"--{item.name}=".startswith(last.text))
        return NamePlace(names, last.start)
    unfilled = reading.unfilled()
    if len(reading.free) >= len(unfilled):
        return None
    given = {item.name: word for item, word in zip(unfilled, reading.free, strict=False)}
    return ValuePlace(unfilled[len(reading.free)].name, last.text, last.start, "", {**reading.named, **given})
