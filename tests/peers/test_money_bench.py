"""A short session of the benchmark of prices, with our agent as its own program."""

import pytest
from bench.money.clients import Isthmus
from bench.money.report import figures, lines
from bench.money.running import run_session


@pytest.mark.extended
def test_a_session_is_carried_out_and_billed() -> None:
    found = run_session(Isthmus("chat"), ("talk", "read", "edit"))
    assert not found.problems
    assert [bill.step for bill in found.bills] == [1, 2, 2, 3, 3]
    assert found.bills[-1].usage.cached > 7_200
    assert found.visible == found.most_visible == 7_200
    assert found.price > 0
    assert any("gpt-5.5" in line for line in lines([found]))
    assert [figure.name for figure in figures([found])] == ["chat, uncached input"]
