"""Checks of one stored task: its row against its events, in order, and what else names it. No I/O."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.encoding.codec import from_json
from isthmus.encoding.json_shapes import as_object
from isthmus.errors import DecodeError
from isthmus.events import (
    EVENT_TYPES,
    FORMER_TYPES,
    AgentEvent,
    Command,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    ToolCallUpdate,
    event_from_json,
)
from isthmus.internal_events import ChatResumed, Restored, Rewound, ToolResultRecorded
from isthmus.journal.postgres.statements import storable
from isthmus.journal.sql.rows import DELETED
from isthmus.journal.sql.tables import TASKS
from isthmus.journal.sql.write_group import EVENT_BYTES

PROBLEMS = 20
"""Maximum number of problems of a task that are told one by one."""
_NOT_UTF_8 = re.compile("[\udc80-\udcff]")
_QUOTED = 60
"""Maximum number of characters of what is quoted."""


class TaskCheck:
    """The check of a task: give it the events in order, then the rest, then ask for the ``problems``.

    ``row`` has the values of the columns of :data:`~isthmus.journal.sql.tables.TASKS`.
    """

    def __init__(self, row: Sequence[Any]) -> None:
        self._row = dict(zip(TASKS.columns, row, strict=True))
        self.task_id = str(self._row["id"])
        self._is_marked = self._row["state"] == DELETED
        self._problems: list[str] = []
        self._more = 0
        self._last = 0
        """Number of the event that was seen last."""
        self._size = 0
        self._change: StateChange | None = None
        self._is_change_last = False
        self._has_begun = False
        self._asked: dict[str, ToolCall] = {}
        """The calls about which a user was asked, and that have not begun since."""
        self._waiting: dict[str, ToolCall] = {}
        """The calls among them that were not answered or given up."""
        self._messages: set[tuple[str, int]] = set()

    @property
    def problems(self) -> Sequence[str]:
        """The problems that were found, in words."""
        return (*self._problems, f"{self._more} more problems") if self._more else tuple(self._problems)

    def event(self, seq: int, at: object, kind: object, body: object) -> None:
        """Take the next event."""
        self._check_number(seq)
        if not isinstance(at, float) or not math.isfinite(at):
            self._report(f"event {seq} has no time ({_quote(at)})")
        self._size += len(str(body)) + EVENT_BYTES
        self._is_change_last = False
        if (event := self._decoded(f"event {seq}", kind, body)) is not None:
            self._fold(seq, event)

    def inbox(self, rows: Iterable[tuple[object, object]]) -> None:
        """Take what waits in its inbox: type and body of each."""
        count = 0
        for kind, body in rows:
            count += 1
            self._decoded("an event in its inbox", kind, body)
        if count != self._row["inbox"]:
            self._report(f"{count} events are in its inbox, its row says {self._row['inbox']}")
        if self._is_marked and count:
            self._report("it is being removed, but has an inbox")

    def messages(self, rows: Iterable[tuple[str, int]]) -> None:
        """Take its rows in the table of messages: id and event number of each."""
        found = {(storable(message) or "", seq) for message, seq in rows}
        expected = set[tuple[str, int]]() if self._is_marked else self._messages
        for message, seq in sorted(expected - found, key=lambda item: item[1]):
            self._report(f"event {seq} is not in the table of messages ({_quote(message)})")
        for message, seq in sorted(found - expected, key=lambda item: item[1]):
            self._report(f"the table of messages has {_quote(message)} at event {seq}, which is not that message")

    def push(self, push_id: str, seq: int) -> None:
        """Take a push target: its id, and the number of the last event that was delivered."""
        if not 0 <= seq <= self._row["seq"] or self._is_marked:
            self._report(f"push {_quote(push_id)} has got event {seq}; the task has {self._row['seq']}")

    def end(self) -> None:
        """Compare its row with what was seen."""
        row = self._row
        if self._last != row["seq"] and not (self._is_marked and self._last == 0):
            self._report(f"its row says that event {row['seq']} is the last one, but that is event {self._last}")
        size = 0 if self._is_marked else self._size
        if size != row["size"]:
            self._report(f"its events have {size} characters (with {EVENT_BYTES} for each), its row says {row['size']}")
        if row["tag"] < 0 or (row["tag"] and row["state"] not in (TaskState.SUBMITTED, TaskState.WORKING)):
            self._report(f"it is {_quote(row['state'])}, but waits in the queue (start tag {row['tag']})")
        if not self._is_marked:
            self._check_state()
            self._check_pending()

    def _check_number(self, seq: int) -> None:
        expected = self._last + 1
        # Of a task that is being removed the first events go first.
        if seq != expected and not (self._is_marked and self._last == 0):
            lost = f"event {expected} is" if seq == expected + 1 else f"events {expected} to {seq - 1} are"
            self._report(
                f"{lost} missing" if seq > expected else f"event {seq} has no number that follows {self._last}"
            )
        self._last = seq

    def _check_state(self) -> None:
        state, change = self._row["state"], self._change
        if state not in tuple(TaskState):
            self._report(f"its state is {_quote(state)}, which this version does not know")
            return
        ends = (storable(self._row["error"]), storable(self._row["reason"]))
        said = (None, None) if change is None else (storable(change.error), storable(change.reason))
        last = "none" if change is None else f"to {change.state}"
        if TaskState(state).ends_stream:
            if change is None or change.state != state:
                self._report(f"its state is {state}, but its last change of state is {last}")
            elif ends != said:
                self._report(f"its error is {_quote(ends)}, but its last change of state says {_quote(said)}")
            return
        if state == TaskState.SUBMITTED and self._has_begun:
            self._report(f"its state is {state}, but its last change of state is {last}")
        if state == TaskState.WORKING and change is not None and change.state.is_terminal and self._is_change_last:
            self._report(f"its state is {state}, but its last event is the change {last}")
        if ends != (None, None) and (change is None or change.state != state or ends != said):
            self._report(f"its state is {state}, but it has an error: {_quote(ends)}")

    def _check_pending(self) -> None:
        try:
            calls = [from_json(ToolCall, as_object(value)) for value in json.loads(self._row["pending"])]
        except (ValueError, TypeError, RecursionError, DecodeError) as error:
            self._report(f"its pending calls cannot be read ({_quote(error)})")
            return
        pending = {call.tool_call_id: call for call in calls}
        for call_id, call in pending.items():
            if self._asked.get(call_id) != call:
                self._report(f"its pending call {_quote(call_id)} is not the one of its events")
        if TaskState(self._row["state"]).is_waiting:
            for call_id in self._waiting.keys() - pending.keys():
                self._report(f"its call {_quote(call_id)} waits for an answer, but is not among its pending calls")
        elif pending and not TaskState(self._row["state"]).is_terminal:
            self._report(f"it is {self._row['state']}, but has pending calls")

    def _decoded(self, what: str, kind: object, body: object) -> AgentEvent | None:
        try:
            if not isinstance(body, str) or _NOT_UTF_8.search(body):
                raise ValueError("it is not UTF-8")
            value = as_object(json.loads(body))
            name = value.get("type")
            if isinstance(name, str) and name not in EVENT_TYPES and name not in FORMER_TYPES:
                self._report(f"{what} is of the type {_quote(name)}, which this version does not know")
                return None
            event = event_from_json(value)
        except (ValueError, TypeError, RecursionError, DecodeError) as error:
            self._report(f"{what} cannot be read ({_quote(error)})")
            return None
        if type(event).__name__ != kind and name != kind:
            self._report(f"{what} is of the type {type(event).__name__}, its row says {_quote(kind)}")
        return event

    def _fold(self, seq: int, event: AgentEvent) -> None:
        if isinstance(event, Prompt | ConfirmationAccepted) and event.message_id:
            self._messages.add((storable(event.message_id) or "", seq))
        match event:
            case StateChange():
                self._change, self._is_change_last = event, True
                self._has_begun |= event.state is not TaskState.SUBMITTED
            case ToolCallUpdate(call):
                self._waiting.pop(call.tool_call_id, None)
                self._asked.pop(call.tool_call_id, None)
                if call.confirmation_request is not None and call.status is ToolCallStatus.PENDING:
                    self._waiting[call.tool_call_id] = self._asked[call.tool_call_id] = call
            case ConfirmationAccepted(confirmation):
                self._waiting.pop(confirmation.tool_call_id, None)
            case ToolResultRecorded(call_id):
                self._waiting.pop(call_id, None)
            case Prompt() | Command() | Restored() | Rewound() | ChatResumed():
                self._waiting.clear()
            case _:
                pass

    def _report(self, text: str) -> None:
        if len(self._problems) < PROBLEMS:
            self._problems.append(text)
        else:
            self._more += 1


def _quote(value: object) -> str:
    text = str(value) if isinstance(value, Exception) else repr(value)
    return text if len(text) <= _QUOTED else text[: _QUOTED - 3] + "..."
