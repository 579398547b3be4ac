"""Requests of an agent to its client: permissions, questions, and files."""

from enum import StrEnum
from typing import ClassVar, TypeAlias

from isthmus.acp.v1.connection import Meta
from isthmus.acp.v1.updates import ToolCallState
from isthmus.encoding.codec import JsonObject
from isthmus.record import record


class PermissionKind(StrEnum):
    """Meaning of an option, by which clients choose a symbol."""

    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"


@record
class PermissionOption:
    """A choice of the user."""

    option_id: str
    name: str
    kind: str


@record
class PermissionRequest:
    """``session/request_permission``: whether a tool call may run."""

    METHOD: ClassVar = "session/request_permission"
    session_id: str
    tool_call: ToolCallState
    options: tuple[PermissionOption, ...]


@record
class Selected:
    """The user chose an option."""

    TAG: ClassVar = ("outcome", "selected")
    option_id: str
    meta: Meta = None


@record
class CancelledOutcome:
    """The turn was cancelled before the user chose."""

    TAG: ClassVar = ("outcome", "cancelled")


@record
class PermissionResponse:
    """The answer to ``session/request_permission``."""

    outcome: Selected | CancelledOutcome
    meta: Meta = None


@record
class FormElicitation:
    """``elicitation/create`` with a form: a flat JSON schema."""

    METHOD: ClassVar = "elicitation/create"
    TAG: ClassVar = ("mode", "form")
    message: str
    requested_schema: JsonObject
    session_id: str | None = None
    tool_call_id: str | None = None


@record
class UrlElicitation:
    """``elicitation/create`` with a page that the user shall open."""

    METHOD: ClassVar = "elicitation/create"
    TAG: ClassVar = ("mode", "url")
    message: str
    url: str
    elicitation_id: str
    session_id: str | None = None
    tool_call_id: str | None = None


@record
class UnknownElicitation:
    """``elicitation/create`` of a mode that Isthmus does not know."""

    TAG: ClassVar = ("mode", None)
    mode: str = ""


Elicitation: TypeAlias = FormElicitation | UrlElicitation | UnknownElicitation


@record
class ElicitationResponse:
    """The answer to ``elicitation/create``; ``action`` is accept, decline or cancel."""

    action: str
    content: JsonObject | None = None


@record
class ReadTextFileRequest:
    """``fs/read_text_file`` at an absolute path; ``line`` is 1-based, ``limit`` a number of lines."""

    METHOD: ClassVar = "fs/read_text_file"
    session_id: str
    path: str
    line: int | None = None
    limit: int | None = None


@record
class ReadTextFileResponse:
    """The text of a file."""

    content: str


@record
class WriteTextFileRequest:
    """``fs/write_text_file`` at an absolute path."""

    METHOD: ClassVar = "fs/write_text_file"
    session_id: str
    path: str
    content: str
