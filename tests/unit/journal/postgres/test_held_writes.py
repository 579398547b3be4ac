"""Writes that wait for locks: the others go on, and each task's writes keep their order."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from isthmus.journal.postgres.held_writes import PAUSES, HeldWrites


def test_nothing_is_due_while_nothing_waits() -> None:
    held = HeldWrites[str]()
    assert held.wait_seconds(50.0) is None
    assert held.take_due(50.0) is None


def test_a_write_is_tried_again_after_longer_and_longer_pauses() -> None:
    held, now = HeldWrites[str](), 1000.0
    pauses: list[float] = []
    for _ in range(len(PAUSES) + 1):
        held.add_locked("a", ["t1"], now)
        pause = held.wait_seconds(now)
        assert pause is not None
        assert held.take_due(now) is None
        now += pause
        pauses.append(round(pause, 6))
        assert held.take_due(now) == "a"
    assert pauses == [*PAUSES, PAUSES[-1]]


def test_the_next_write_is_tried_at_once_after_a_lock_was_had() -> None:
    held = HeldWrites[str]()
    held.add_locked("a", ["t1"], 1000.0)
    held.add_locked("b", ["t2"], 1000.0)
    assert held.take_due(1005.0) == "a"
    held.note_lock(1005.0)
    assert held.take_due(1005.0) == "b"


def test_a_write_of_another_task_is_not_behind_one_that_waits() -> None:
    held = HeldWrites[str]()
    held.add_locked("a", ["t1", "t2"], 1000.0)
    assert held.is_behind(["t2"])
    assert not held.is_behind(["t3"])
    assert not held.is_behind([])


def test_chosen_writes_are_removed() -> None:
    held = HeldWrites[str]()
    for name in ("a", "b", "c"):
        held.add_locked(name, [name], 1000.0)
    assert held.remove(lambda name: name != "b") == ["a", "c"]
    assert held.take_due(2000.0) == "b"


@given(
    st.lists(st.sets(st.sampled_from("xyz"), min_size=1), max_size=12),
    st.lists(st.booleans(), max_size=60),
)
def test_writes_of_a_task_keep_their_order_whichever_lock_is_missing(tasks: list[set[str]], locked: list[bool]) -> None:
    held, now = HeldWrites[int](), 1000.0
    done: dict[str, list[int]] = defaultdict(list)
    for number, names in enumerate(tasks):
        if held.is_behind(names):
            held.add(number, names)
        else:
            held.add_locked(number, names, now)
    answers = iter([*locked, *[False] * len(tasks)])
    while held:
        now += PAUSES[-1]
        number = held.take_due(now)
        assert number is not None
        if next(answers, False):
            held.add_locked(number, tasks[number], now)
            continue
        held.note_lock(now)
        for name in tasks[number]:
            done[name].append(number)
    for name, numbers in done.items():
        assert numbers == [number for number, names in enumerate(tasks) if name in names]
