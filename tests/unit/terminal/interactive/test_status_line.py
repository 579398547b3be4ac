from typing import Any

import pytest

from isthmus.client import CommandScope
from isthmus.session_status import Cost, SessionStatus
from isthmus.task_view import ModelUsage
from isthmus.terminal.interactive.status_line import StatusLine


def line(**known: Any) -> StatusLine:
    return StatusLine(known.pop("agent", None), lambda: CommandScope(None, None, None), lambda: "plan", "·", **known)


def test_the_status_names_what_is_known_and_nothing_else() -> None:
    assert line().text(80) == "plan"
    status = line(model="m\x1b[2J", branch="main", status=SessionStatus(None, 50_000, 200_000))
    status.add_usage([("m2", ModelUsage(input_tokens=1200, output_tokens=300))])
    assert status.text(80) == "plan · m2 · context 25% used · main · 1.5k tokens"
    status.status = SessionStatus(None, 50_000, 200_000, cached_share=0.936)
    assert status.text(80) == "plan · m2 · context 25% used · 94% cached · main · 1.5k tokens"
    status.waiting = 1
    assert status.text(80).startswith("plan · 1 question waiting in other sessions · m2")


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (None, "plan"),
        (Cost(0.4237, "EUR"), "plan · 0.42 EUR"),
        (Cost(0.0001, "CHF"), "plan · <0.01 CHF"),
        (Cost(0, "credits\x1b"), "plan · 0.00 credits␛"),
    ],
)
def test_a_cost_is_shown_if_it_is_known(cost: Cost | None, shown: str) -> None:
    assert line(status=SessionStatus(cost=cost)).text(80) == shown


def test_a_narrow_terminal_gets_whole_parts() -> None:
    status = line(model="a-long-name-of-a-model", branch="main")
    assert [status.text(width) for width in (12, 29, 40)] == [
        "plan · main", "plan · a-long-name-of-a-model", "plan · a-long-name-of-a-model · main",
    ]  # fmt: skip


def test_nothing_in_the_status_controls_the_terminal() -> None:
    assert "\x1b" not in line(model="\x1b[2J", branch="\x1b]0;x\x07", editor="\x9b2J").text(200)
