"""The estimate before a switch of models: what is written to a cache costs as where a user thinks."""

from dataclasses import dataclass
from decimal import Decimal

import pytest

from isthmus.agent.context.switch_price import switch_price
from isthmus.agent.session.session import Session
from isthmus.events import Prompt
from isthmus.internal_events import ModelReply
from isthmus.models.port.base import Capabilities, Message, Text
from isthmus.models.port.costs import ModelCosts, Price
from isthmus.models.port.message import message_to_json
from support.unstreamed import Unstreamed


@dataclass
class Priced(Unstreamed):
    """A model with a name and prices alone."""

    name: str
    capabilities: Capabilities
    provider: str = "test"


def model(name: str, write: str | None, write_for_an_hour: str | None) -> Priced:
    of_writing = [None if price is None else Decimal(price) for price in (write, write_for_an_hour)]
    return Priced(
        name, Capabilities(costs=ModelCosts((Price(0, Decimal(2), Decimal(10), Decimal("0.2"), *of_writing),)))
    )


@pytest.mark.parametrize(
    ("write", "write_for_an_hour", "dollars"), [("2.5", "4", "4"), ("2.5", None, "2.5"), (None, None, "2")]
)
def test_what_a_switch_writes_is_kept_for_an_hour_where_that_can_be(
    write: str | None, write_for_an_hour: str | None, dollars: str
) -> None:
    session = Session("c")
    said = message_to_json(Message("assistant", (Text("Hello."),)))
    session.apply(Prompt("p", "hi"), "t")
    session.apply(ModelReply("present", "test", said, input_tokens=999_990, output_tokens=10), "t")
    found = switch_price(session, model("present", write, write_for_an_hour), model("chosen", write, write_for_an_hour))
    assert found is not None
    assert found.after == Decimal(dollars) * 10**12
