"""The end of a session that was resumed: its texts and its finished calls, in the order in which they began. Pure."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from isthmus.client import Delivery
from isthmus.events import AgentMessage, Command, Prompt, TextContent, ToolCallUpdate
from isthmus.record import record
from isthmus.task_view import CallView, TaskView

RESUMED_MESSAGES = 6
"""Maximum number of texts that are shown again."""
RESUMED_CALLS = 12
"""Maximum number of calls between two texts that are shown again: the last ones."""


@record
class PastText:
    """A text of the ``user`` or the ``agent`` (``role``)."""

    role: str
    text: str


@record
class LeftOut:
    """A number of calls that are not shown again."""

    calls: int


PastItem: TypeAlias = PastText | CallView | LeftOut


def past_items(deliveries: Iterable[Delivery]) -> list[PastItem]:
    """Return what a task showed; calls that have not ended are left out, since they are shown when they go on."""
    view = TaskView()
    order: dict[tuple[str, str], PastText | None] = {}
    for delivery in deliveries:
        view.apply(delivery)
        match delivery.event:
            case Prompt() as prompt:
                order["prompt", str(len(order))] = PastText("user", prompt.text)
            case Command(path=path, args=args):
                order["prompt", str(len(order))] = PastText("user", " ".join(("/" + " ".join(path), args)).strip())
            case TextContent() | AgentMessage(was_streamed=False) as text:
                order.setdefault(("text", text.message_id), None)
            case ToolCallUpdate() as update:
                order.setdefault(("call", update.tool_call.tool_call_id), None)
            case _:
                pass
    items: list[PastItem] = []
    for (kind, name), text in order.items():
        if text is not None:
            items.append(text)
        elif kind == "text" and (message := view.messages.get(name)) is not None:
            items.append(PastText("agent", message.text))
        elif kind == "call" and view.calls[name].call.status.is_final:
            items.append(view.calls[name])
    return [item for item in items if not isinstance(item, PastText) or item.text.strip()]


def count_texts(items: Iterable[PastItem]) -> int:
    """Return the number of texts among the items."""
    return sum(isinstance(item, PastText) for item in items)


def end_of(items: Sequence[PastItem]) -> list[PastItem]:
    """Return the last texts, and the last calls before, between and after them."""
    left = count_texts(items) - RESUMED_MESSAGES
    shown: list[PastItem] = []
    calls: list[PastItem] = []
    for item in items:
        if not isinstance(item, PastText):
            calls.append(item)
            continue
        left -= 1
        shown = [] if left >= 0 else [*shown, *_last(calls), item]
        calls = []
    return [*shown, *_last(calls)]


def _last(calls: list[PastItem]) -> list[PastItem]:
    hidden = len(calls) - RESUMED_CALLS
    return [LeftOut(hidden), *calls[hidden:]] if hidden > 0 else calls
