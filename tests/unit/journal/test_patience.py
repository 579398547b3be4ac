from isthmus.journal.patience import Patience

LEASE, GAP = 20.0, 5.0


def reached(patience: Patience, begin: float, end: float) -> None:
    """Let the journal answer each second."""
    for second in range(int(begin), int(end) + 1):
        patience.reached(float(second))


def test_a_new_process_waits_for_a_whole_lease() -> None:
    patience = Patience(LEASE, GAP)
    assert not patience.has_waited(100.0)
    reached(patience, 100, 119)
    assert not patience.has_waited(119.9)
    patience.reached(120.0)
    assert patience.has_waited(120.0)


def test_the_wait_begins_anew_when_the_journal_is_back() -> None:
    patience = Patience(LEASE, GAP)
    reached(patience, 0, 50)
    patience.lost()
    assert not patience.has_waited(51.0)
    reached(patience, 53, 72)
    assert not patience.has_waited(72.9)
    patience.reached(73.0)
    assert patience.has_waited(73.0)


def test_a_journal_that_answers_late_was_away() -> None:
    patience = Patience(LEASE, GAP)
    reached(patience, 0, 50)
    assert patience.has_waited(50 + GAP)
    assert not patience.has_waited(50 + GAP + 0.1), "nothing is known of the time since the last answer"
    patience.reached(56.0)
    assert patience.since == 56.0
    assert not patience.has_waited(56.0)


def test_a_pause_that_is_no_gap_changes_nothing() -> None:
    patience = Patience(LEASE, GAP)
    reached(patience, 0, 50)
    patience.reached(55.0)
    assert patience.since == 0.0
    assert patience.has_waited(55.0)


def test_a_lease_that_is_assumed_need_not_be_waited_for() -> None:
    patience = Patience(LEASE, GAP)
    patience.assume(100.0)
    assert patience.has_waited(100.0)
    patience.lost()
    patience.reached(101.0)
    assert not patience.has_waited(101.0)
