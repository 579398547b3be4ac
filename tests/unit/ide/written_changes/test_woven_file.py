"""Changes of turns and of the user in one file, kept and undone in any order; an independent program judges merges."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.ide.written_changes.file_content import DiskFile, digest_of, text_of, tokens_of
from isthmus.ide.written_changes.woven_file import WovenFile
from isthmus.ide.written_changes.woven_hunks import BY_USER, HunkState, WovenHunk

Edit = Callable[[list[str], str], list[str]]


def _tokens(text: str) -> list[str]:
    data = text.encode()
    return tokens_of(DiskFile(data, digest_of(data), 0o644))


def _file(text: str) -> WovenFile:
    return WovenFile(_tokens(text))


def _text(file: WovenFile) -> str:
    return text_of(file.tokens) or ""


def _before(file: WovenFile) -> str:
    return text_of(file.tokens_after(BY_USER)) or ""


def _lines(hunks: tuple[WovenHunk, ...]) -> list[tuple[str, str]]:
    return [("".join(hunk.old), "".join(hunk.new)) for hunk in hunks]


def _undo(file: WovenFile, *hunks: WovenHunk, operation: int = 1) -> list[WovenHunk]:
    every = file.with_later(hunks)
    file.undo(every, operation)
    return every


def test_one_hunk_of_two_is_undone() -> None:
    file = _file("a\nb\nc\nd\n")
    file.write_by_agent(_tokens("A\nb\nc\nD\n"), 1)
    first, second = file.hunks(1)
    assert _lines((first, second)) == [("a\n", "A\n"), ("d\n", "D\n")]
    assert (second.old_start, second.new_start, second.line) == (3, 3, 3)
    _undo(file, first)
    assert _text(file) == "a\nb\nc\nD\n"
    assert [hunk.state for hunk in file.hunks(1)] == [HunkState.UNDONE, HunkState.WRITTEN]
    file.take_back(1)
    assert _text(file) == "A\nb\nc\nD\n"
    assert [hunk.id for hunk in file.hunks(1)] == [first.id, second.id]


def test_what_the_user_wrote_is_no_change_of_an_agent() -> None:
    file = _file("a\nb\nc\nd\ne\n")
    file.write_by_agent(_tokens("a\nB\nc\nd\ne\n"), 1)
    file.write_by_user(_tokens("mine\na\nB\nc\nd\nE\n"))
    assert _lines(file.hunks()) == [("b\n", "B\n")]
    assert _before(file) == "mine\na\nb\nc\nd\nE\n"
    _undo(file, *file.hunks(1))
    assert _text(file) == "mine\na\nb\nc\nd\nE\n"


def test_a_hunk_that_the_user_changed_is_theirs() -> None:
    file = _file("a\nb\nc\n")
    file.write_by_agent(_tokens("a\nB\nX\nc\n"), 1)
    (hunk,) = file.hunks(1)
    taken = file.write_by_user(_tokens("a\nB\nmine\nX\nc\n"))
    assert [each.id for each in taken] == [hunk.id]
    assert not file.is_changed
    assert _text(file) == "a\nB\nmine\nX\nc\n"


def test_a_hunk_of_a_later_turn_goes_with_the_one_below_it() -> None:
    file = _file("a\nb\nc\n")
    file.write_by_agent(_tokens("a\nB1\nB2\nc\n"), 1)
    file.write_by_agent(_tokens("a\nB1\nB3\nc\nlater\n"), 2)
    assert _lines(file.hunks(1)) == [("b\n", "B1\nB2\n")]
    assert _lines(file.hunks(2)) == [("B2\n", "B3\n"), ("", "later\n")]
    assert _lines(file.hunks()) == [("b\n", "B1\nB3\n"), ("", "later\n")]
    assert [hunk.turns for hunk in file.hunks()] == [(1, 2), (2,)]
    undone = _undo(file, file.hunks(1)[0])
    assert sorted(turn for hunk in undone for turn in hunk.turns) == [1, 2]
    assert _text(file) == "a\nb\nc\nlater\n"


def test_the_later_hunk_alone_is_undone_to_the_earlier_one() -> None:
    file = _file("a\nb\nc\n")
    file.write_by_agent(_tokens("a\nB1\nB2\nc\n"), 1)
    file.write_by_agent(_tokens("a\nB1\nB3\nc\n"), 2)
    _undo(file, *file.hunks(2))
    assert _text(file) == "a\nB1\nB2\nc\n"


def test_keeping_the_later_hunk_keeps_the_one_below_it() -> None:
    file = _file("a\nb\nc\n")
    file.write_by_agent(_tokens("a\nB\nc\n"), 1)
    file.write_by_agent(_tokens("a\nC\nc\n"), 2)
    file.keep(file.with_earlier(file.hunks(2)))
    assert not file.is_changed
    assert _text(file) == "a\nC\nc\n"


def test_a_turn_that_takes_its_own_writing_back_has_changed_nothing() -> None:
    file = _file("a\nb\n")
    file.write_by_agent(_tokens("a\nB\n"), 1)
    file.write_by_agent(_tokens("a\nb\n"), 1)
    assert not file.is_changed


def test_a_created_file_is_one_hunk_and_undone_is_gone() -> None:
    file = WovenFile()
    file.write_by_agent(_tokens("a\nb\n"), 1)
    (hunk,) = file.hunks(1)
    assert (hunk.is_whole, hunk.new) == (True, ("a\n", "b\n"))
    file.write_by_agent(_tokens("a\nb\nc\n"), 2)
    assert len(_undo(file, hunk)) == 2
    assert file.tokens == []
    file.take_back(1)
    assert _text(file) == "a\nb\nc\n"


def test_what_the_user_adds_to_a_created_file_keeps_it() -> None:
    file = WovenFile()
    file.write_by_agent(_tokens("a\nb\n"), 1)
    file.write_by_user(_tokens("a\nb\nmine\n"))
    assert not file.is_changed


def test_a_mode_is_undone_apart_from_the_lines() -> None:
    file = _file("a\nb\n")
    data = b"A\nb\n"
    file.write_by_agent(tokens_of(DiskFile(data, digest_of(data), 0o755)), 1)
    mode, line = file.hunks(1)
    assert (mode.about, line.about) == ({"m"}, {"l"})
    _undo(file, mode)
    assert file.tokens == _tokens("A\nb\n")


def test_a_write_over_an_undone_hunk_settles_it() -> None:
    file = _file("a\nb\nc\n")
    file.write_by_agent(_tokens("a\nB\nc\n"), 1)
    _undo(file, *file.hunks(1))
    file.write_by_user(_tokens("a\nmine\nc\n"))
    assert not file.is_changed
    file.take_back(1)
    assert _text(file) == "a\nmine\nc\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_missing_final_newline_and_line_ends_stay(ending: str) -> None:
    old, new = ending.join("abxc"), ending.join("aBxcd")
    file = _file(old)
    file.write_by_agent(_tokens(new), 1)
    first, second = file.hunks(1)
    _undo(file, second)
    assert _text(file) == ending.join("aBxc")
    _undo(file, first, operation=2)
    assert _text(file) == old


class _History:
    """Random writes of a user and of agents into a file. Lines of the user have a number that is used once."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)  # noqa: S311
        self.folder = folder
        self.number = 0
        base = [f"line {index}\n" for index in range(self.chance.randint(0, 30))]
        self.file = _file("".join(base))
        self.expected: str | None = "".join(base)
        """What is there without the agents; None once git finds that the user changed lines of theirs."""
        self.turn = 0
        self.operation = 0

    def edited(self, by: str) -> str:
        lines = _text(self.file).splitlines(keepends=True)
        for _ in range(self.chance.randint(1, 3)):
            start = self.chance.randint(0, len(lines))
            end = min(len(lines), start + self.chance.choice([0, 0, 1, 1, 2, 4]))
            if by == "user":  # they may delete what they wrote, which would be lost otherwise
                end = next((i for i in range(start, end) if lines[i].startswith("user")), end)
            new: list[str] = []
            for _ in range(self.chance.choice([0, 1, 1, 2])):
                self.number += 1
                new.append(f"{by} {self.number}\n")
            kept = [line for line in lines[start:end] if line.startswith("user")] if by != "user" else []
            lines[start:end] = [*new, *kept]
        return "".join(lines)

    def agent_writes(self) -> None:
        self.turn += self.turn == 0 or self.chance.random() < 0.6
        self.file.write_by_agent(_tokens(self.edited(f"agent {self.turn}")), self.turn)

    def user_writes(self) -> None:
        before, after = _text(self.file), self.edited("user")
        self.file.write_by_user(_tokens(after))
        assert _text(self.file) == after
        if self.expected is not None:
            self.expected = _merged(self.folder, self.expected, before, after)

    def user_lines(self) -> list[str]:
        return [line for line in _text(self.file).splitlines() if line.startswith("user")]

    def decide(self) -> None:
        hunks = [h for turn in self.file.turns for h in self.file.hunks(turn) if h.state is HunkState.WRITTEN]
        if not hunks:
            return
        chosen = self.chance.sample(hunks, self.chance.randint(1, len(hunks)))
        text, lines = _text(self.file), self.user_lines()
        match self.chance.choice(["keep", "undo", "undo and take back"]):
            case "keep":
                self.expected = None
                self.file.keep(self.file.with_earlier(chosen))
                assert _text(self.file) == text
            case "undo":
                self.operation += 1
                _undo(self.file, *chosen, operation=self.operation)
            case _:
                self.operation += 1
                _undo(self.file, *chosen, operation=self.operation)
                self.file.take_back(self.operation)
                assert _text(self.file) == text
        assert self.user_lines() == lines


def _merged(folder: Path, ours: str, base: str, theirs: str) -> str | None:
    """Return what git makes of two changes of one text; None if they conflict."""
    names = [folder / name for name in ("ours", "base", "theirs")]
    for name, text in zip(names, (ours, base, theirs), strict=True):
        name.write_text(text, encoding="utf-8")
    done = subprocess.run(["git", "merge-file", "-p", *names], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


@pytest.mark.parametrize("seed", range(150))
def test_undoing_everything_leaves_the_baseline_with_the_users_changes(seed: int, tmp_path: Path) -> None:
    history = _History(seed, tmp_path)
    for _ in range(history.chance.randint(2, 8)):
        history.chance.choice([history.agent_writes, history.user_writes])()
    lines = history.user_lines()
    for turn in history.file.turns:
        _undo(history.file, *(h for h in history.file.hunks(turn) if h.state is HunkState.WRITTEN), operation=turn)
    assert history.user_lines() == lines
    if history.expected is not None:
        assert _text(history.file) == history.expected
    assert not history.file.is_written


@pytest.mark.parametrize("seed", range(300))
def test_nothing_of_the_user_is_lost_in_any_order_of_decisions(seed: int, tmp_path: Path) -> None:
    history = _History(seed, tmp_path)
    history.expected = None
    for _ in range(history.chance.randint(4, 16)):
        lines = history.user_lines()
        step = history.chance.choice([history.agent_writes, history.user_writes, history.decide, history.decide])
        step()
        if step != history.user_writes:
            assert history.user_lines() == lines
        assert WovenFile.from_json(history.file.to_json()).hunks() == history.file.hunks()
        for turn in history.file.turns:  # the texts of each turn agree with its hunks
            assert _patched(history.file, turn) == history.file.tokens_after(turn)
    text = _text(history.file)
    history.file.keep([h for turn in history.file.turns for h in history.file.hunks(turn) if h.undo is None])
    history.file.settle_undone()
    assert (_text(history.file), _before(history.file)) == (text, text)
    assert not history.file.is_changed


def _patched(file: WovenFile, turn: int) -> list[str]:
    """Return the content before a turn with its hunks applied."""
    lines = file.tokens_after(turn - 1)
    head = sum(token[0] != "l" for token in lines)
    for hunk in reversed([hunk for hunk in file.hunks(turn) if hunk.state is HunkState.WRITTEN]):
        start = head + hunk.old_start
        assert [token[1:] for token in lines[start : start + len(hunk.old)]] == list(hunk.old)
        lines[start : start + len(hunk.old)] = ["l" + line for line in hunk.new]
    return lines
