"""Warnings of tools of MCP servers that the model is not offered."""

import pytest

from isthmus.agent.calls.withheld_tools import MAXIMUM_NAMED, WithheldNotice


def test_each_tool_is_named_once_and_not_too_many_of_them(caplog: pytest.LogCaptureFixture) -> None:
    notice = WithheldNotice()
    for withheld in ({}, {"tickets": ("add",)}, {"tickets": ("add",)}, {"tickets": ("add", "close"), "mail": ()}):
        notice.say(withheld)
    notice.say({"many": tuple(map(str, range(MAXIMUM_NAMED + 3)))})
    told = [record.getMessage().partition(" here: ")[2] for record in caplog.records]
    assert told[0].startswith("tickets.add. Allow them with --allowed-tools 'tickets.add',")
    assert told[1].startswith("tickets.close, mail. Allow them with --allowed-tools 'tickets.close,mail',")
    assert "many.19 and 3 more. Allow" in told[2]
    assert len(told) == 3
