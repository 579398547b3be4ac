from isthmus.mcp_host.connection.backoff import ReconnectPolicy, RelistBackoff


def test_a_server_that_does_not_hold_is_tried_later_and_later_and_then_given_up() -> None:
    retries = ReconnectPolicy(30.0)
    waits: list[float] = []
    while not retries.is_exhausted:
        retries.note_end(29.9, has_answered=False)
        waits.append(retries.next_seconds())
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 15.0]


def test_a_connection_that_held_or_answered_makes_the_next_loss_the_first_one() -> None:
    for seconds, has_answered in ((30.0, False), (0.0, True)):
        retries = ReconnectPolicy(30.0)
        retries.next_seconds()
        retries.note_end(seconds, has_answered=has_answered)
        assert retries.next_seconds() == 0.5


def test_what_was_given_up_is_tried_again_once_after_half_a_minute() -> None:
    retries = ReconnectPolicy(30.0)
    assert not retries.take_turn(1000.0)
    retries.give_up(1000.0)
    assert [retries.take_turn(now) for now in (1029.9, 1030.0, 1030.1, 2000.0)] == [False, True, False, False]


def test_changes_that_come_one_upon_another_are_gathered_for_longer_and_longer() -> None:
    pace, now, waits = RelistBackoff(), 100.0, list[float]()
    for _ in range(10):
        waits.append(pace.seconds(now))
        now += waits[-1] + 0.05
    assert waits[:4] == [0.2, 0.4, 0.8, 1.6]
    assert waits[-1] == 30.0


def test_a_server_that_was_quiet_is_listed_soon_again() -> None:
    pace = RelistBackoff()
    assert [pace.seconds(0), pace.seconds(0.3), pace.seconds(20)] == [0.2, 0.4, 0.2]
