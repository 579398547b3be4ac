"""A tool call of the last model message, from the request to its result, as a session keeps it."""

from isthmus.development_tool import ConfirmationDetails, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.models.port.base import ModelToolResult, ToolRequest
from isthmus.record import record


@record
class OpenCall:
    """A tool call of the last model message: the model's request and its progress.

    ``request`` is the call that is meant; ``asked_as`` is the name of the tool in the model's message if it differs, as
    for `call_tool`. ``call`` is the last announced state, None before the first. ``proposal`` has the details that the
    user was shown. ``confirmation`` is the user's answer. ``result`` is the result for the model; with it the call is
    settled.
    """

    request: ToolRequest
    call: ToolCall | None = None
    proposal: ConfirmationDetails | None = None
    confirmation: ToolCallConfirmation | None = None
    result: ModelToolResult | None = None
    is_models: bool = True
    """Whether the model asked for it; otherwise a command did, or an agent without a model."""
    asked_as: str = ""
    announcements: int = 0
    """Number of announcements without a question; each resumption after the end of a process adds one."""

    @property
    def is_waiting(self) -> bool:
        """Whether a user has been asked and has not answered."""
        return (
            self.call is not None
            and self.call.status is ToolCallStatus.PENDING
            and self.call.confirmation_request is not None
            and self.confirmation is None
            and self.result is None
        )
