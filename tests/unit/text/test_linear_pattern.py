import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.text.linear_pattern import LinearPattern, TooMuchWorkError, UnsupportedPatternError


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ('"command":"(git|npm)', '{"command":"npm i"}', True),
        ('"command":"(git|npm)', '{"command":"ls git"}', False),
        (r"\bpush\b", "git push origin", True),
        (r"\bpush\b", "git pushed", False),
        (r"\Bx", "ax", True),
        (r"^write_.*$", "write_file", True),
        (r"^write_.*$", "overwrite_file", False),
        ("a{2,3}b", "xab", False),
        ("a{2,3}b", "xaaaab", True),
        ("a{2}", "a", False),
        ("a{,2}", "a{,2}", True),
        ("x{", "x{", True),
        ("[^a-c]z", "az", False),
        (r"[\w-]+\.env", "my-app.env", True),
        (r"\/etc\/", "/etc/passwd", True),
        (r"\u0041\x42", "AB", True),
        ("a.b", "a\nb", False),
        ("(?:ab)+?c", "ababc", True),
        ("(?<name>a)b", "ab", True),
        ("", "", True),
        ("a||b", "z", True),
        ("[]", "]", False),
        ("[^]", "x", True),
        ("(a*)*$", "aaab", True),
        ("$", "x", True),
        ("(^|/)secret", "a/secret", True),
        ("mcp__.*", "mcp__s__t", True),
    ],
)
def test_a_pattern_finds_what_javascript_finds(pattern: str, text: str, found: bool) -> None:
    assert LinearPattern(pattern).is_in(text) is found


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b",
        "(?!a)b",
        "(?<=a)b",
        "(?<!a)b",
        r"(a)\1",
        r"\p{L}",
        r"\k<x>",
        "(?i)a",
        "(",
        ")",
        "[a",
        "a**",
        "*a",
        "^*",
        "[z-a]",
        "a{3,2}",
        "\\",
        "a" * 3000,
        "(" * 60 + ")" * 60,
        "((a{99}){99}){99}",
        "a{0,99999}",
        "a{99999,}",
        "a{" + "9" * 2000 + "}",
        r"[\D]",
        r"\A",
        r"\07",
    ],
)
def test_a_pattern_that_needs_backtracking_or_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedPatternError):
        LinearPattern(pattern)


@pytest.mark.timeout(10)
def test_a_repetition_of_nothing_takes_no_time() -> None:
    pattern = LinearPattern("x(?:(?:(?:(?:){4000}){4000}){4000}){4000}y")
    assert pattern.is_in("xy")
    assert not pattern.is_in("x y")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "a*a*a*a*a*b", "(x+x+)+y"])
def test_a_pattern_that_explodes_in_other_engines_takes_linear_time(pattern: str) -> None:
    started = time.process_time()
    LinearPattern(pattern).is_in("a" * 100_000 + "x" * 100_000)
    assert time.process_time() - started < 2


def test_a_search_that_needs_too_many_states_is_given_up() -> None:
    text = "".join(f"{number:b}" for number in range(20_000)).replace("0", "a").replace("1", "b")
    with pytest.raises(TooMuchWorkError):
        LinearPattern("(a|b)*a(a|b){200}c").is_in(text)


PIECES = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\b", "^", "$", "(a|b)", "(?:ab)", "a*", "(b)+", "a?", "c{2}"]
)


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=6), st.lists(PIECES, max_size=4), st.text("abc -", max_size=12))
def test_the_answer_is_that_of_another_engine(first: list[str], second: list[str], text: str) -> None:
    pattern = "".join(first) + ("|" + "".join(second) if second else "")
    expected = re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None
    assert LinearPattern(pattern).is_in(text) is expected
