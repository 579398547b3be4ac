"""Hunks that are taken one by one; the judge is the program patch."""

import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.text.diff import unified_diff
from isthmus.text.hunks import NoSuchHunkError, comparable, hunks_between, with_hunks

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "d", "\f", "é"]), max_size=30)


def _picked(diff: str, numbers: set[int]) -> str:
    """Return these hunks of a numbered diff, without the lines around them; one that is alone has no number."""
    head, *hunks = diff.split("\n@@ ")
    picked = [head]
    for number, hunk in enumerate(hunks, 1):
        header, *lines = hunk.removesuffix("\n").split("\n")
        assert header.endswith(f"@@ hunk {number} of {len(hunks)}" if len(hunks) > 1 else " @@")
        start, _, length = header.split(" ")[0].removeprefix("-").partition(",")
        first = int(start) + (length == "0")
        while lines[0].startswith(" "):
            lines, first = lines[1:], first + 1
        removed, added = (sum(line.startswith(sign) for line in lines) for sign in "-+")
        if number in numbers:
            picked.append(f"@@ -{first - (removed == 0)},{removed} +{first},{added} @@")
            picked += [line for index, line in enumerate(lines) if not _is_context(lines, index)]
    return "\n".join(picked) + "\n"


def _is_context(lines: list[str], index: int) -> bool:
    """Return whether a line is one around the hunk, or the mark of a missing newline after one."""
    return lines[index - lines[index].startswith("\\")].startswith(" ")


@given(old=LINES, new=LINES, old_ends=st.booleans(), new_ends=st.booleans(), data=st.data())
def test_patch_with_the_same_hunks_makes_the_same_text(
    tmp_path_factory: pytest.TempPathFactory,
    old: list[str],
    new: list[str],
    old_ends: bool,
    new_ends: bool,
    data: st.DataObject,
) -> None:
    before, after = "\n".join(old) + "\n" * old_ends, "\n".join(new) + "\n" * new_ends
    hunks = hunks_between(before, after)
    numbers = data.draw(st.sets(st.sampled_from([hunk.number for hunk in hunks]))) if hunks else set[int]()
    text = with_hunks(before, after, numbers)
    if not numbers:
        assert text == before
        return
    if not before or not after:
        assert text == after
        return
    folder = tmp_path_factory.mktemp("patch")
    diff = unified_diff(before, after, "f", is_numbered=True)
    (folder / "f").write_bytes(before.encode())
    command = ["patch", "--fuzz=0", "--posix", "--silent", "--binary", "f"]
    subprocess.run(command, input=_picked(diff, numbers).encode(), cwd=folder, check=True, timeout=60)
    assert (folder / "f").read_bytes() == text.encode()


@given(old=LINES, new=LINES)
def test_hunks_are_runs_of_changed_lines_with_equal_lines_between(old: list[str], new: list[str]) -> None:
    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    hunks = hunks_between(before, after)
    assert [hunk.number for hunk in hunks] == list(range(1, len(hunks) + 1))
    for first, second in pairwise(hunks):
        assert first.old_end < second.old_start
        assert old[first.old_end : second.old_start] == new[first.new_end : second.new_start]
    assert with_hunks(before, after, [hunk.number for hunk in hunks]) == after


def test_a_proposal_without_carriage_returns_changes_only_its_own_lines() -> None:
    old, new = "\ufeffa\r\nb\r\nc\r\n", "A\nb\nC\n"
    assert len(hunks_between(old, new)) == 2
    assert with_hunks(old, new, [2]) == "a\nb\nC\n"
    assert with_hunks(old, "A\r\nb\r\nC\r\n", [1]) == "A\r\nb\r\nc\r\n"
    assert comparable("a\nb\n", "A\r\nb\r\n") == "a\r\nb\r\n"


def test_a_new_file_is_one_hunk() -> None:
    assert [hunk.number for hunk in hunks_between(None, "a\nb\n")] == [1]
    assert with_hunks(None, "a\nb\n", [1]) == "a\nb\n"


def test_an_unknown_number_names_those_that_there_are() -> None:
    with pytest.raises(NoSuchHunkError, match="no hunk has the number 3; the hunks are 1-2"):
        with_hunks("a\nb\nc\n", "A\nb\nC\n", [1, 3])
