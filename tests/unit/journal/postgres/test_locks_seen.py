import math

from isthmus.journal.postgres.locks_seen import SKEW_SECONDS, LocksSeen

NEVER = -math.inf


def gone(locks: LocksSeen, heard_at: float = NEVER, *, has_waited: bool = False) -> bool:
    return locks.is_gone("other", heard_at, has_waited=has_waited)


def seen(*looks: bool, since: float = 10.0) -> LocksSeen:
    """Return what looks, a second apart, tell of one lock: whether it was held at each."""
    locks = LocksSeen(since)
    for number, is_held in enumerate(looks):
        locks.take({"other": is_held}, since + number)
    return locks


def test_a_process_that_was_seen_to_come_and_to_leave_is_gone() -> None:
    assert not gone(seen(False, True))
    assert not gone(seen(False, True, False)), "one look is not enough"
    assert gone(seen(False, True, False, False))
    assert not gone(seen(False, True, False, True)), "it was connected anew"


def test_a_process_that_came_and_ended_between_two_looks_is_gone() -> None:
    locks = LocksSeen(0.0)
    for number, found in enumerate(({}, {"other": False}, {"other": False})):
        locks.take(found, float(number))
    assert gone(locks)


def test_a_process_that_has_not_come_yet_after_an_outage_is_not_gone() -> None:
    locks = seen(False, False, False, False)
    assert locks.missing == ["other"]
    assert not gone(locks)
    assert gone(locks, has_waited=True)


def test_a_lock_that_the_database_released_late_is_not_that_of_a_process_that_ended() -> None:
    locks = seen(True, True, False, False)
    assert not gone(locks), "the lock may have been held for a connection that was lost in the outage"
    assert not gone(locks, heard_at=9.0)
    assert not gone(locks, heard_at=10.0 + SKEW_SECONDS), "clocks may differ"
    assert gone(locks, heard_at=10.1 + SKEW_SECONDS)
    assert gone(locks, has_waited=True)


def test_a_process_that_writes_without_its_lock_lives() -> None:
    later = 12.1 + SKEW_SECONDS
    assert not gone(seen(False, True, False, False, False), heard_at=later)
    assert not gone(seen(False, False, False, False, False), heard_at=later)
    assert not gone(seen(True, True, False, False, False), heard_at=later, has_waited=True)
    assert gone(seen(False, True, False, False), heard_at=12.0), "it wrote just before it was killed"


def test_those_who_are_missing_are_told_once() -> None:
    locks = LocksSeen(0.0)
    told = [set(locks.take({"a": a, "b": True}, now)) for now, a in enumerate([True, False, False, False, True])]
    assert told == [set(), set(), {"a"}, set(), set()]


def test_of_a_process_that_was_never_seen_nothing_is_known() -> None:
    assert not gone(LocksSeen(), has_waited=True)
