"""Requests of a server as questions to a user: their texts, options and data. Pure.

Each line of the server's text is marked as such, and long text is cut. Not here: asking, and the use of the answer, see
:mod:`isthmus.mcp_host.elicitation.server_requests`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from isthmus.development_tool import ConfirmationOption, FileDiff, GenericDetails
from isthmus.encoding.codec import JsonObject
from isthmus.forms.form import Form, quoted
from isthmus.forms.requested_schema import REQUESTED_SCHEMA, requested_schema
from isthmus.mcp_host.elicitation.page_address import host_of
from isthmus.questions import ELICITATION, SAMPLING
from isthmus.record import record
from isthmus.tools.port.user_question import UserQuestion

ACCEPT = "accept"
DECLINE = "decline"
CANCEL = "cancel"
ALLOW_ONCE = "proceed_once"
ALLOW_ALWAYS = "proceed_always_sampling"
LONGEST_SCHEMA = 100_000
"""Maximum number of characters of a form's schema in its question, with which clients can ask for each field."""
SHOWN_MESSAGE = 1_000
"""Maximum number of characters of each message of a prompt that are shown to a user."""
SHOWN_HINTS = 200
_KIND = re.compile(r"[\w.+-]{1,40}(/[\w.+-]{1,60})?", re.ASCII)

_DECLINE = ConfirmationOption(DECLINE, "Decline", "The server is informed that you declined")
_CANCEL = ConfirmationOption(CANCEL, "Dismiss", "The server is informed that you did not answer")


@record
class SamplingPromptMessage:
    """A message of a server's prompt: its blocks as in MCP, and the text of the text blocks."""

    role: Literal["user", "assistant"]
    text: str
    blocks: tuple[Mapping[str, Any], ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        """The kinds of its blocks other than text, safe to show in one of our lines."""
        blocks = (block for block in self.blocks if block.get("type") != "text")
        return tuple(_kind(str(block.get("mimeType") or block.get("type"))) for block in blocks)


@record
class SamplingPrompt:
    """A server's request to the model. ``hints`` are the names of models that it prefers."""

    system: str
    messages: tuple[SamplingPromptMessage, ...]
    maximum_tokens: int
    stop_sequences: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def form_question(
    server: str, message: str, form: Form, workspace: Path, problem: str = "", last: str = "", host: str = ""
) -> UserQuestion:
    """Return the question of a form: its choices if it is a single choice, otherwise a document to fill in.

    ``problem`` describes the errors in ``last``, the document of the previous attempt. ``host`` is the host to which
    the answer goes; empty if the server is a program.
    """
    fields = [field.name for field in form.fields]
    about: dict[str, Any] = {"server": server, "mode": "form", "message": message, "fields": fields}
    about |= {"host": host} if host else {}
    about |= {"problem": problem} if problem else {}
    schema = requested_schema(form)
    if len(json.dumps(schema)) <= LONGEST_SCHEMA:
        about[REQUESTED_SCHEMA] = schema
    described = _with_message(f"The MCP server {server} asks you", message)
    if not form.fields or form.is_direct:
        details = GenericDetails(described)
        answers = form.options() if form.fields else (ConfirmationOption(ACCEPT, "Accept"),)
        return _question(server, message, details, (*answers, _DECLINE, _CANCEL), about)
    name = f"{''.join(letter if letter.isalnum() or letter in '-_.' else '-' for letter in server)}-request.json"
    document = form.document(server, message, problem, last)
    # The path is only shown; the file is never written.
    details = FileDiff(name, str(workspace / name), document, formatted_diff=document)
    accept = ConfirmationOption(ACCEPT, "Send", "The server gets the document's values, as you have edited them")
    return _question(server, message, details, (accept, _DECLINE, _CANCEL), about)


def url_question(server: str, message: str, url: str, *, opens_browser: bool) -> UserQuestion:
    """Return the question whether to open a server's page.

    Raises:
        UrlError: a user should not be sent to this URL.
    """
    host = host_of(url)
    how = "It is opened in your browser" if opens_browser else "Open it yourself"
    lines = [
        f"The MCP server {server} asks you to go to a page:",
        f"  {url}",
        f"Its host: {host}",
        "It says:",
        *quoted(message),
        f"{how} only if you accept. What you enter there goes to that host, not to the model.",
    ]
    accept = ConfirmationOption(ACCEPT, "Open the page" if opens_browser else "I go there")
    about = {
        "server": server,
        "mode": "url",
        "message": message,
        "url": url,
        "host": host,
        "opens_browser": opens_browser,
    }
    return _question(server, message, GenericDetails("\n".join(lines)), (accept, _DECLINE, _CANCEL), about)


def done_question(server: str, tool: str, urls: Sequence[str]) -> UserQuestion:
    """Return the question whether the user is done with the pages that a tool requires before it runs."""
    pages = "\n".join(f"  {url}" for url in urls)
    text = f"{tool} of the MCP server {server} is called again when you are done with:\n{pages}"
    options = (ConfirmationOption(ACCEPT, "I am done"), ConfirmationOption(CANCEL, "Give up"))
    about = {"server": server, "mode": "url", "urls": list(urls)}
    return _question(server, text, GenericDetails(text), options, about)


def sampling_question(server: str, prompt: SamplingPrompt) -> UserQuestion:
    """Return the question whether a server may ask the session's model, at the user's cost."""
    lines = [f"The MCP server {server} wants the model to answer this, at your cost:"]
    if prompt.system:
        lines += ["system:", *quoted(prompt.system, limit=SHOWN_MESSAGE)]
    for message in prompt.messages:
        kinds = ", ".join(message.others)
        lines += [f"{message.role}:{f' [{kinds}]' if kinds else ''}", *quoted(message.text, limit=SHOWN_MESSAGE)]
    lines.append(f"The answer, of at most {prompt.maximum_tokens:,} tokens, goes to the server.")
    if prompt.hints:
        lines.append("It prefers another model, but your session's model is used. It says:")
        lines += quoted(", ".join(prompt.hints), limit=SHOWN_HINTS)
    options = (
        ConfirmationOption(ALLOW_ONCE, "Allow once"),
        ConfirmationOption(
            ALLOW_ALWAYS,
            f"Always allow {server}",
            "For the rest of this session, you are not asked again",
            covers=server,
        ),
        ConfirmationOption(CANCEL, "Reject", "The server is informed"),
    )
    about = {
        "server": server,
        "messages": [{"role": item.role, "text": item.text[:SHOWN_MESSAGE]} for item in prompt.messages],
        "max_tokens": prompt.maximum_tokens,
    }
    return UserQuestion(
        SAMPLING,
        server,
        f"{server} asks the model",
        GenericDetails("\n".join(lines)),
        options,
        frozenset({ALLOW_ONCE, ALLOW_ALWAYS}),
        about,
        ALLOW_ALWAYS,
    )


def _question(
    server: str,
    message: str,
    details: GenericDetails | FileDiff,
    options: tuple[ConfirmationOption, ...],
    about: JsonObject,
) -> UserQuestion:
    accepting = frozenset(option.id for option in options) - {DECLINE, CANCEL}
    return UserQuestion(
        ELICITATION, server, f"{server} asks: {_first_line(message)}", details, options, accepting, about
    )


def _kind(stated: str) -> str:
    return stated if _KIND.fullmatch(stated) else "of an unknown kind"


def _with_message(head: str, message: str) -> str:
    return "\n".join([f"{head}:", *quoted(message)])


def _first_line(message: str) -> str:
    lines = quoted(message, "")
    return lines[0][:120]


def without_stop(text: str, stop_sequences: Sequence[str]) -> tuple[str, bool]:
    """Return the text before the first of the stop sequences, and whether it contains one."""
    found = [text.index(sequence) for sequence in stop_sequences if sequence and sequence in text]
    return (text[: min(found)], True) if found else (text, False)
