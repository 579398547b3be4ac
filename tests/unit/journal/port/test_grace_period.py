from isthmus.journal.port.grace_period import GracePeriod

LEASE, GAP = 20.0, 5.0


def reached(grace: GracePeriod, begin: float, end: float) -> None:
    """Let the journal answer each second."""
    for second in range(int(begin), int(end) + 1):
        grace.reached(float(second))


def test_a_new_process_waits_for_a_whole_lease() -> None:
    grace = GracePeriod(LEASE, GAP)
    assert not grace.has_waited(100.0)
    reached(grace, 100, 119)
    assert not grace.has_waited(119.9)
    grace.reached(120.0)
    assert grace.has_waited(120.0)


def test_the_wait_begins_anew_when_the_journal_is_back() -> None:
    grace = GracePeriod(LEASE, GAP)
    reached(grace, 0, 50)
    grace.lost()
    assert not grace.has_waited(51.0)
    reached(grace, 53, 72)
    assert not grace.has_waited(72.9)
    grace.reached(73.0)
    assert grace.has_waited(73.0)


def test_a_journal_that_answers_late_was_away() -> None:
    grace = GracePeriod(LEASE, GAP)
    reached(grace, 0, 50)
    assert grace.has_waited(50 + GAP)
    assert not grace.has_waited(50 + GAP + 0.1), "nothing is known of the time since the last answer"
    grace.reached(56.0)
    assert grace.since == 56.0
    assert not grace.has_waited(56.0)


def test_a_pause_that_is_no_gap_changes_nothing() -> None:
    grace = GracePeriod(LEASE, GAP)
    reached(grace, 0, 50)
    grace.reached(55.0)
    assert grace.since == 0.0
    assert grace.has_waited(55.0)


def test_a_lease_that_is_assumed_need_not_be_waited_for() -> None:
    grace = GracePeriod(LEASE, GAP)
    grace.assume(100.0)
    assert grace.has_waited(100.0)
    grace.lost()
    grace.reached(101.0)
    assert not grace.has_waited(101.0)
