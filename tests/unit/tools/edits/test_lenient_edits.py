"""Edits whose old text differs from the file: where they are carried out, what of the file is kept, what is refused."""

from pathlib import Path

import click
import hypothesis
import pytest
import starlette
from bench.edit_cases import KINDS, edit_cases, refused_cases
from bench.edits import corpus, outcome
from hypothesis import given
from hypothesis import strategies as st

from isthmus.tools.edits.replacement import NotReplaced, Replaced, replace_text
from isthmus.tools.matching.tokens import TokenText

FUNCTION = """\
class Greeter:
    def greet(self, name):
        # Say hello to the user politely.
        text = f"Hello, {name}"

        if not name:
            raise ValueError("no name")
        return self.send(text, retry=True)
"""

BEGINNING = FUNCTION.partition("\n")[2].partition("\n\n")[0]


def edited(text: str, old: str, new: str) -> str:
    outcome = replace_text(text, old, new)
    assert isinstance(outcome, Replaced), outcome
    return outcome.text


@pytest.mark.parametrize(
    ("old", "new", "expected", "tolerated"),
    [
        pytest.param(
            "        if not name:\n            raise ValueError('no name')\n",
            "        if not name.strip():\n            raise ValueError('no name')\n",
            FUNCTION.replace("not name:", "not name.strip():"),
            "other quotation marks",
            id="quotes",
        ),
        pytest.param(
            "        if not name:   \n            raise ValueError(\"no name\")\t\n",
            "        if not name:   \n            return None\t\n",
            FUNCTION.replace('raise ValueError("no name")', "return None"),
            "other white space at the ends of lines",
            id="line ends",
        ),
        pytest.param(
            "if not name:\n    raise ValueError(\"no name\")\nreturn self",
            "if not name:\n    if strict:\n        raise ValueError(\"no name\")\nreturn self",
            FUNCTION.replace(
                '            raise ValueError("no name")',
                '            if strict:\n                raise ValueError("no name")',
            ),
            "another indentation",
            id="indentation",
        ),
        pytest.param(
            "\t\tif not name:\n\t\t\traise ValueError(\"no name\")",
            "\t\tif not name:\n\t\t\tlog()\n\t\t\traise ValueError(\"no name\")",
            FUNCTION.replace("            raise", "            log()\n            raise"),
            "another indentation (tabs, spaces or depth)",
            id="tabs",
        ),
        pytest.param(
            "{name}\"\n        if not name:\n",
            "{name}\"\n        if not name or quiet:\n",
            FUNCTION.replace("if not name:", "if not name or quiet:"),
            "other blank lines",
            id="a blank line too few",
        ),
        pytest.param(
            "        if not name:\n\n            raise ValueError(\"no name\")",
            "        if not name:\n\n            raise TypeError(\"no name\")",
            FUNCTION.replace("ValueError", "TypeError"),
            "other blank lines",
            id="a blank line too many",
        ),
        pytest.param(
            "return self.send( text, retry = True )",
            "return self.send( text, retry = False )",
            FUNCTION.replace("retry=True", "retry=False"),
            "other white space within lines",
            id="spaces within a line",
        ),
        pytest.param(
            "if not name: raise ValueError(\"no name\")",
            "if not name: raise TypeError(\"no name\")",
            FUNCTION.replace("ValueError", "TypeError"),
            "other white space within lines",
            id="joined lines",
        ),
        pytest.param(
            "raise ValueError(\u201cno name\u201d)",
            "raise TypeError(\u201cno name\u201d)",
            FUNCTION.replace("ValueError", "TypeError"),
            "other Unicode punctuation",
            id="Unicode punctuation",
        ),
        pytest.param(
            'if not name:\\n            raise ValueError(\\"no name\\")',
            'if not name:\\n            log(\\"no name\\")',
            FUNCTION.replace("raise ValueError", "log"),
            "fewer escapes: new_string was unescaped in the same way",
            id="escapes",
        ),
        pytest.param(
            BEGINNING.replace("politely", "kindly"),
            BEGINNING.replace("politely", "kindly").replace("Hello, ", "Welcome, "),
            FUNCTION.replace("Hello, ", "Welcome, "),
            "other words, which were kept: line 3 has 'politely', not 'kindly'",
            id="a word of a comment",
        ),
    ],
)  # fmt: skip
def test_an_edit_with_one_kind_of_mistake_changes_only_what_it_means(
    old: str, new: str, expected: str, tolerated: str
) -> None:
    assert replace_text(FUNCTION, old, new) == Replaced(expected, 1, tolerated)


def test_new_text_in_the_indentation_of_the_file_stays_so() -> None:
    text = "class A:\n    def f(self):\n        return 1\n"
    old = "def f(self):\n    return 1\n"
    assert edited(text, "    " + old.replace("\n    ", "\n\t\t"), "    def f(self):\n        return 2\n") == (
        text.replace("1", "2")
    )
    assert edited(text, old, "def f(self):\n    if x:\n        return 1\n") == (
        "class A:\n    def f(self):\n        if x:\n            return 1\n"
    )


def test_removed_lines_leave_the_blank_lines_of_the_file() -> None:
    text = "one()\n\ntwo()\nthree()\n\n\nfour()\n"
    assert edited(text, "one()\ntwo()\nthree()\nfour()", "one()\ntwo()\nfour()") == "one()\n\ntwo()\n\n\nfour()\n"
    assert edited(text, "one()\ntwo()\nthree()\n", "two()\nthree()\n") == "\ntwo()\nthree()\n\n\nfour()\n"
    assert edited("  a(1)\n\n  b(2)\n", "a(1)\nb(2)\n", "") == ""


@pytest.mark.parametrize(
    ("text", "old", "count"),
    [
        pytest.param("f(a, b)\ng()\nf(a, b)\n", "f( a,b )", 2, id="twice with the same tokens"),
        pytest.param("x = 1\n}\n", "\n\n  }", 0, id="no word"),
        pytest.param("total = compute(1)\n", "compute (1", 0, id="few tokens within a line"),
        pytest.param("x = foo(bar)\n", "    foo(bar)", 0, id="an indented line in the middle of another"),
        pytest.param("result = first_thing\n", "result = other_thing", 0, id="a short line with another word"),
        pytest.param(
            "// See the License for the permissions and limitations.\n\npackage google.longrunning;\n",
            "// See the License for the permissions and limitations.\n\npackage google.api;\n",
            0,
            id="another word in code",
        ),
        pytest.param(
            "def f(a):\n    # first case\n    return g(a, one)\n\ndef f(a):\n    # second case\n    return g(a, one)\n",
            "def f(a):\n    # third case\n    return g(a, one)\n",
            0,
            id="two places with another word each",
        ),
    ],
)
def test_a_piece_that_says_too_little_about_its_place_is_refused(text: str, old: str, count: int) -> None:
    outcome = replace_text(text, old, "changed()\n")
    assert isinstance(outcome, NotReplaced), outcome
    assert outcome.count == count


def test_a_place_that_differs_less_is_preferred() -> None:
    text = "if a:\n    f(x)\n\nif b:\n        f( x )\n"
    assert edited(text, "    f(x)  \n", "    g(x)\n") == text.replace("    f(x)", "    g(x)")


def test_an_edit_of_a_word_that_the_file_has_differently_shows_the_nearest_lines() -> None:
    old = '        # Say hello to the user kindly.\n        text = f"Hello, {name}"\n'
    outcome = replace_text(FUNCTION, old, old.replace("kindly", "slowly"))
    assert outcome == NotReplaced(
        0, nearest='3\t        # Say hello to the user politely.\n4\t        text = f"Hello, {name}"'
    )


def test_places_are_named_by_their_lines() -> None:
    assert replace_text("a = 1\nb\na = 1\n", "a = 1", "x") == NotReplaced(2, (1, 3))
    assert replace_text("a = 1\nb\na = 1\n", "a  =  1", "x") == NotReplaced(2, (1, 3))


def test_all_places_are_replaced_if_any_number_is_expected() -> None:
    outcome = replace_text("f(1, x)\n  f(1, x)\n", "f( 1, x )", "g( 1, x )", None)
    assert outcome == Replaced("g(1, x)\n  g(1, x)\n", 2, "other white space within lines")


def test_a_very_long_line_of_the_same_words_is_refused_soon() -> None:
    outcome = replace_text("x=1;" * 50_000, "x = 1; x=1; " * 5, "y", None)
    assert isinstance(outcome, NotReplaced)


WORDS = st.sampled_from(["alpha", "beta", "gamma", "=", "(", ")", ",", '"', ":"])
GAPS = st.sampled_from([" ", "  ", "\n", "\n    ", "\n\n  ", "\t", " \n"])


@given(st.data())
def test_an_edit_with_other_white_space_changes_one_word_and_nothing_else(data: st.DataObject) -> None:
    words = data.draw(st.lists(WORDS, min_size=5, max_size=30))
    place = data.draw(st.integers(1, len(words) - 2))
    words[place] = "unique"
    text = "".join(word + data.draw(GAPS) for word in ["first", *words, "last"])
    old = "".join(word + data.draw(GAPS) for word in ["first", *words]) + "last"
    found = replace_text(text, old, old.replace("unique", "changed"))
    assert isinstance(found, Replaced)
    expected = ["first", *("changed" if word == "unique" else word for word in words), "last"]
    assert TokenText(found.text).tokens == TokenText(" ".join(expected)).tokens
    start = text.index("unique")
    assert found.text[start:].startswith("changed")
    assert found.text[:start] == text[:start]


@given(*[st.text(st.sampled_from("ab(\"'`\\n\u201c #\n\t\r"), max_size=60)] * 3, st.sampled_from([None, 1, 2]))
def test_any_texts_give_a_result(text: str, old: str, new: str, expected: int | None) -> None:
    if old:
        replace_text(text, old, new, expected)


@pytest.mark.slow
def test_the_cases_of_the_benchmark_are_right_or_refused() -> None:
    files = corpus([Path(str(package.__file__)).parent for package in (click, hypothesis, starlette)])
    results = [(case, outcome(case)) for case in edit_cases(files, 8, seed=11)]
    wrong = [case for case, result in results if result == "wrong"]
    assert len(wrong) <= 1, wrong
    assert sum(result == "right" for _, result in results) >= 0.97 * 8 * len(KINDS)
    assert [case for case in refused_cases(files, 60, seed=11) if outcome(case) != "right"] == []
