"""The tool calls of a session's last model message, and those of its command, by id. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from isthmus.agent.session.meant_call import meant_call
from isthmus.agent.session.open_call import OpenCall
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.internal_events import ToolResultRecorded
from isthmus.models.port.base import ModelToolResult, ToolRequest
from isthmus.questions import QUESTION_MARK


class OpenCalls(dict[str, OpenCall]):
    """The calls by id, in the order of their requests."""

    @classmethod
    def requested(cls, requests: Iterable[ToolRequest]) -> "OpenCalls":
        """Return the calls that a model message requests; a call through `call_tool` is the call that it means."""
        return cls((request.id, _open_call(request)) for request in requests)

    @property
    def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for a user."""
        return tuple(item.call for item in self.values() if item.is_waiting and item.call is not None)

    @property
    def given_up(self) -> tuple[ToolCall, ...]:
        """The announced calls that will not run; the model has been given a result for each."""
        settled = [item.call for item in self.values() if item.result is not None and item.call is not None]
        return tuple(call for call in settled if not call.status.is_final)

    @property
    def unsettled(self) -> tuple[OpenCall, ...]:
        """The calls that have no result yet."""
        return tuple(item for item in self.values() if item.result is None)

    def asker_of(self, item: OpenCall) -> str | None:
        """Return the id of the call that asks this question; None for an ordinary call."""
        call_id, mark, _ = item.request.id.rpartition(QUESTION_MARK)
        return call_id if mark and not item.is_models and call_id in self else None

    def questions_of(self, call_id: str) -> tuple[OpenCall, ...]:
        """Return the questions that a call has asked, in order."""
        return tuple(item for item in self.values() if self.asker_of(item) == call_id)

    def take(self, call: ToolCall) -> OpenCall:
        """Take the next state of a call, which is added if no request of the model began it; return what is kept."""
        item = self.get(call.tool_call_id)
        if item is None:
            request = ToolRequest(call.tool_call_id, call.tool_name, call.input_parameters)
            item = OpenCall(request, is_models=False)
        asked = call.confirmation_request
        proposal = asked.details if asked is not None else item.proposal
        is_announced = call.status is ToolCallStatus.PENDING and asked is None
        announcements = item.announcements + is_announced
        taken = self[call.tool_call_id] = replace(item, call=call, proposal=proposal, announcements=announcements)
        return taken

    def settle(self, recorded: ToolResultRecorded) -> tuple[ModelToolResult, ...]:
        """Take the result of a call, the first one alone; return those that the model gets with it.

        The model gets all results of its message at once, in the order of its requests.
        """
        item = self.get(recorded.tool_call_id)
        if item is None or item.result is not None:
            return ()
        name = item.asked_as or item.request.name
        result = ModelToolResult(recorded.tool_call_id, name, recorded.content, recorded.is_error, recorded.media)
        self[recorded.tool_call_id] = replace(item, result=result)
        if not item.is_models:
            return ()
        asked = [item.result for item in self.values() if item.is_models]
        results = tuple(result for result in asked if result is not None)
        return results if len(results) == len(asked) else ()


def _open_call(request: ToolRequest) -> OpenCall:
    meant = meant_call(request)
    return OpenCall(meant) if meant is request else OpenCall(meant, asked_as=request.name)
