import subprocess
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.development_tool import SlashCommandArgument
from isthmus.slash_commands.arguments import (
    CommandArgumentError,
    NamePlace,
    ValuePlace,
    place_at_end,
    read_arguments,
    shell_words,
    usage,
)

TITLE = SlashCommandArgument("title", "The title", is_required=True)
MOOD = SlashCommandArgument("mood", "The mood")
LENGTH = SlashCommandArgument("length", "How long", is_required=True)
POEM = (TITLE, MOOD)


@pytest.mark.requirement("MCP-153", "MCP-154")
@pytest.mark.parametrize(
    "typed",
    [
        '--title="Gemini CLI" --mood="reverent"',
        "--title 'Gemini CLI' --mood reverent",
        '"Gemini CLI" reverent',
        r"Gemini\ CLI reverent",
        '--mood=reverent "Gemini CLI"',
        '"Gemini CLI" --mood reverent',
        '  "Gemini"" CLI"\t--mood=rev"er"ent\n',
        '--mood=reverent -- "Gemini CLI"',
    ],
)
def test_arguments_are_given_by_name_by_place_or_both(typed: str) -> None:
    assert read_arguments(typed, POEM) == {"title": "Gemini CLI", "mood": "reverent"}


@pytest.mark.parametrize(
    ("typed", "arguments", "values"),
    [
        ("Gemini", POEM, {"title": "Gemini"}),
        ("a b c d", POEM, {"title": "a", "mood": "b c d"}),
        ("--mood=x a b  c", POEM, {"title": "a b c"} | {"mood": "x"}),
        ("one", (MOOD, TITLE), {"title": "one"}),
        ("one two", (MOOD, TITLE), {"mood": "one", "title": "two"}),
        ("one two", (MOOD, TITLE, LENGTH), {"title": "one", "length": "two"}),
        ("-- --not-a-name", POEM, {"title": "--not-a-name"}),
        ('--title="" ', POEM, {"title": ""}),
        ("-5 -x", POEM, {"title": "-5", "mood": "-x"}),
        ("--title=--mood=x", POEM, {"title": "--mood=x"}),
        ("$HOME *.py # x", POEM, {"title": "$HOME", "mood": "*.py # x"}),
        ("", (MOOD,), {}),
    ],
)
def test_words_without_a_name_go_by_place(
    typed: str, arguments: tuple[SlashCommandArgument, ...], values: dict[str, str]
) -> None:
    assert read_arguments(typed, arguments) == values


@pytest.mark.requirement("MCP-152")
@pytest.mark.parametrize(
    ("typed", "arguments", "words"),
    [
        ("", POEM, "Missing required argument: --title"),
        ("--mood=x", (TITLE, MOOD, LENGTH), "Missing required arguments: --title, --length"),
        ("--tilte=x", POEM, "no argument --tilte. Did you mean --title?"),
        ("--zzz", POEM, "It takes --title, --mood"),
        ("--title", POEM, "--title needs a value"),
        ("--title --mood=x", POEM, "--title needs a value, but --mood=x follows; write --title=VALUE"),
        ("--title=a --title=b", POEM, "--title is given twice"),
        ('"half open', POEM, 'The quote " is not closed'),
        ("'half open", POEM, "The quote ' is not closed"),
        ("too much", (), "It takes no arguments; 'too much' is too much"),
        ("--title=a --mood=b c", POEM, "All its arguments have a value already; 'c' is too much"),
    ],
)
def test_what_does_not_fit_is_named(typed: str, arguments: tuple[SlashCommandArgument, ...], words: str) -> None:
    with pytest.raises(CommandArgumentError) as raised:
        read_arguments(typed, arguments)
    assert words in str(raised.value)


NONE: dict[str, str] = {}
LETTERS = st.text(st.sampled_from(list("ab-=,.é \t'\"\\")), max_size=25)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(LETTERS, min_size=1, max_size=20))
def test_words_are_those_of_the_shell(texts: list[str]) -> None:
    # Many texts in one shell; unquoted line ends are only in the examples: there they end a command.
    whole = [text for text in texts if not any(word.open_quote for word in shell_words(text)) and text[-1:] != "\\"]
    script = "\n".join(f"printf '%s\\0' x {text}; printf '\\1'" for text in whole)
    ran = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    expected = [part.split("\0")[1:-1] for part in ran.stdout.decode().split("\1")[:-1]]
    assert [[word.text for word in shell_words(text)] for text in whole] == expected


@given(st.text())
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    words = shell_words(text)
    assert [word.start for word in words] == sorted({word.start for word in words})
    with suppress(CommandArgumentError):
        assert "title" in read_arguments(text, POEM)
    place_at_end(text, POEM)


def test_line_ends_and_escapes_are_the_shells() -> None:
    assert [word.text for word in shell_words('a\\\nb "c\\\nd" "\\$\\`\\x" e\nf')] == ["ab", "cd", "$`\\x", "e", "f"]
    assert shell_words("a\\")[0].text == "a\\"


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("", ("title", "", NONE)),
        (" --title=Gem", ("title", "Gem", NONE)),
        (' --title="Gem C', ("title", "Gem C", NONE)),
        (" --title Ge", ("title", "Ge", NONE)),
        (" --title ", ("title", "", NONE)),
        (" one tw", ("mood", "tw", {"title": "one"})),
        (" --mood=x ", ("title", "", {"mood": "x"})),
        (" one --mood=", ("mood", "", NONE)),
    ],
)
def test_the_value_that_is_being_typed_is_known(typed: str, place: tuple[str, str, dict[str, str]]) -> None:
    found = place_at_end(typed, POEM)
    assert isinstance(found, ValuePlace)
    assert (found.argument, found.typed, found.given) == place
    assert typed[: found.start] + found.completed("a b") in (
        *(f"{typed[: found.start]}{beginning}'a b'" for beginning in ("", "--title=", "--mood=")),
    )


def test_the_names_that_are_left_are_known() -> None:
    assert place_at_end(" --", POEM) == NamePlace(("--title=", "--mood="), 1)
    assert place_at_end(" --title=x --m", POEM) == NamePlace(("--mood=",), 11)
    assert place_at_end(" a b c", POEM) is None
    assert place_at_end(" --nope=x y", POEM) is None


def test_the_usage_names_every_argument() -> None:
    assert usage("poem-writer", POEM) == "Usage: /poem-writer --title=... [--mood=...]"
