from isthmus.mcp_host.connection.relist_backoff import LONGEST_SECONDS, RelistBackoff


def test_changes_that_come_one_upon_another_are_gathered_for_longer_and_longer() -> None:
    pace, now, waits = RelistBackoff(), 100.0, list[float]()
    for _ in range(10):
        waits.append(pace.seconds(now))
        now += waits[-1] + 0.05
    assert waits[:4] == [0.2, 0.4, 0.8, 1.6]
    assert waits[-1] == LONGEST_SECONDS


def test_a_server_that_was_quiet_is_listed_soon_again() -> None:
    pace = RelistBackoff()
    assert [pace.seconds(0), pace.seconds(0.3), pace.seconds(20)] == [0.2, 0.4, 0.2]
