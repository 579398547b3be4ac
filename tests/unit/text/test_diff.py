import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.text.diff import line_opcodes, split_lines, unified_diff

TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))
LINES = st.lists(st.sampled_from(["", "a", "b", "c", "\f", "é"]), max_size=30)


@given(TEXTS)
def test_lines_joined_are_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.endswith("\n") for line in lines[:-1])


@given(LINES, LINES)
def test_opcodes_lead_from_the_old_lines_to_the_new_without_gaps(old: list[str], new: list[str]) -> None:
    result: list[str] = []
    old_position = new_position = 0
    for tag, start, end, new_start, new_end in line_opcodes(old, new):
        assert (start, new_start) == (old_position, new_position)
        assert (tag == "equal") == (old[start:end] == new[new_start:new_end])
        result += new[new_start:new_end]
        old_position, new_position = end, new_end
    assert result == new
    assert old_position == len(old)


@given(old=LINES, new=LINES, old_ends=st.booleans(), new_ends=st.booleans())
def test_patch_makes_the_new_text_from_the_old_and_the_diff(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    old_text, new_text = "\n".join(old) + "\n" * old_ends, "\n".join(new) + "\n" * new_ends
    if not old_text or not new_text or old_text == new_text:
        return
    folder = tmp_path_factory.mktemp("patch")
    (folder / "f").write_bytes(old_text.encode())
    diff = unified_diff(old_text, new_text, "f")
    subprocess.run(["git", "apply", "-p1", "--whitespace=nowarn"], input=diff.encode(), cwd=folder, check=True)
    assert (folder / "f").read_bytes() == new_text.encode()


def test_a_new_file_is_a_diff_from_nothing() -> None:
    assert unified_diff(None, "a\n", "src/a.txt") == "--- /dev/null\n+++ b/src/a.txt\n@@ -0,0 +1 @@\n+a\n"


def test_equal_texts_have_an_empty_diff() -> None:
    assert unified_diff("a", "a", "f") == ""


def test_a_missing_final_newline_is_marked() -> None:
    diff = unified_diff("a\nb", "a\nb\n", "f")
    assert diff.endswith("-b\n\\ No newline at end of file\n+b\n")


@pytest.mark.slow
def test_few_changes_in_a_huge_file_give_a_small_diff() -> None:
    old = [f"line {index}\n" for index in range(200_000)]
    new = list(old)
    new[10] = "first change\n"
    new[100_000:100_000] = ["inserted\n"]
    del new[190_000]
    diff = unified_diff("".join(old), "".join(new), "f")
    assert diff.count("\n@@ ") == 3
    assert len(diff) < 1_000


@pytest.mark.slow
def test_the_diff_of_huge_texts_without_unique_lines_is_found_at_once() -> None:
    old = "a\nb\n" * 60_000
    new = "b\na\na\n" * 40_000
    assert "The diff is cut here" not in unified_diff(old, new, "f")


def test_a_diff_that_is_too_long_says_where_it_is_cut() -> None:
    diff = unified_diff("", "x" * 99 + "\n" + ("y" * 99 + "\n") * 20_000, "f")
    assert len(diff) < 1_100_000
    assert diff.endswith("\\ The diff is cut here: it has more than 1000000 characters.\n")
