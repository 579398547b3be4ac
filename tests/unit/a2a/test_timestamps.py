import pytest

from isthmus.a2a.protocol.task_encoder import timestamp


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (-0.001, "1969-12-31T23:59:59.999Z"),
        (1790000000.001, "2026-09-21T14:13:20.001Z"),
        (1790000000.0019, "2026-09-21T14:13:20.001Z"),
        (1790000000.9999999, "2026-09-21T14:13:21.000Z"),
    ],
)
def test_a_time_has_milliseconds_in_utc(at: float, text: str) -> None:
    assert timestamp(at) == text
