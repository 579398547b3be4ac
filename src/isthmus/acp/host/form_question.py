"""A form that an agent asks the user to fill in, ``elicitation/create``, as a question of ours. Sans I/O.

Not here: pages to which an agent sends the user; agents are told that we do not show these.
"""

import json

from typing_extensions import override

from isthmus.acp.host.agent_question import AgentQuestion
from isthmus.acp.v1.client_requests import ElicitationResponse, FormElicitation
from isthmus.development_tool import ConfirmationDetails, ConfirmationOption, FileDiff, GenericDetails
from isthmus.encoding.codec import JsonObject
from isthmus.forms.form import Content, quoted
from isthmus.forms.requested_schema import REQUESTED_SCHEMA, form_of, requested_schema

ACCEPT = "accept"
DECLINE = "decline"
CANCEL = "cancel"
LONGEST_SCHEMA = 100_000
"""Maximum number of characters of a form's schema in its question, with which clients can ask for each field."""
_REFUSALS = (
    ConfirmationOption(DECLINE, "Decline", "The agent is informed that you declined", kind="reject_once"),
    ConfirmationOption(CANCEL, "Dismiss", "The agent is informed that you did not answer", kind="reject_once"),
)


class FormQuestion(AgentQuestion[ElicitationResponse]):
    """A form of an agent. An answer that does not fit it is asked for again, with the ``problem``.

    Raises:
        FormError: the requested schema is not a form.
    """

    def __init__(self, request: FormElicitation, agent: str, folder: str) -> None:
        super().__init__()
        self._form = form_of(request.requested_schema)
        self._message = request.message
        self._agent = agent
        self._folder = folder
        self.problem = ""
        self.last = ""
        """The document of the previous attempt."""

    @property
    def is_direct(self) -> bool:
        """Whether a few options are enough to answer it."""
        return not self._form.fields or self._form.is_direct

    @property
    def description(self) -> str:
        """Beginning of the agent's message, in one line."""
        return f"{self._agent} asks: {quoted(self._message, '')[0][:120]}"

    @property
    def about(self) -> JsonObject:
        """The question as data."""
        about: JsonObject = {
            "mode": "form",
            "message": self._message,
            "fields": [field.name for field in self._form.fields],
        }
        schema = requested_schema(self._form)
        if len(json.dumps(schema)) <= LONGEST_SCHEMA:
            about[REQUESTED_SCHEMA] = schema
        return {**about, "problem": self.problem} if self.problem else about

    @property
    def details(self) -> ConfirmationDetails:
        """The text that the user reads, or the document to fill in; its path is only shown."""
        if self.is_direct:
            return GenericDetails("\n".join([f"{self._agent} asks you:", *quoted(self._message)]))
        document = self._document
        return FileDiff("request.json", f"{self._folder}/request.json", document, formatted_diff=document)

    @property
    def options(self) -> tuple[ConfirmationOption, ...]:
        """The answers that the user can choose."""
        if not self.is_direct:
            send = "The agent gets the document's values, as you have edited them"
            return (ConfirmationOption(ACCEPT, "Send", send, kind="allow_once"), *_REFUSALS)
        answers = self._form.options() if self._form.fields else (ConfirmationOption(ACCEPT, "Accept"),)
        return (*answers, *_REFUSALS)

    def content(self, option_id: str, document: str | None) -> Content:
        """Return the values of an answer; ``document`` is the user's text, None if it was left as it was.

        Raises:
            FormError: they do not fit the form.
        """
        if self.is_direct:
            return (self._form.chosen(option_id) if self._form.fields else None) or {}
        return self._form.read(self._document if document is None else document)

    @override
    def refuses(self, option_id: str) -> bool:
        return option_id in (DECLINE, CANCEL)

    @override
    def refuse(self) -> None:
        self.answer(ElicitationResponse(DECLINE))

    @override
    def cancel(self) -> None:
        self.answer(ElicitationResponse(CANCEL))

    @property
    def _document(self) -> str:
        return self._form.document(self._agent, self._message, self.problem, self.last, kind="The agent")
