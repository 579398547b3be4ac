"""What a server may ask, as questions to a person: their texts, options and data. Pure.

Whatever the server says is shown as its words, each line marked, and cut when long. Deliberately not here: who is
asked and what becomes of the answer (:mod:`isthmus.mcp_host.asking`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from isthmus.client import ELICITATION
from isthmus.codec import JsonObject
from isthmus.development_tool import ConfirmationOption, FileDiff, GenericDetails
from isthmus.elicitation_form import REQUESTED_SCHEMA, Form, quoted
from isthmus.errors import IsthmusError
from isthmus.tools.asking import PersonQuestion

SAMPLING = "sampling"
"""The tool name of a call by which a server asks the model."""
ACCEPT = "accept"
DECLINE = "decline"
CANCEL = "cancel"
ALLOW_ONCE = "proceed_once"
ALLOW_ALWAYS = "proceed_always_sampling"
LONGEST_URL = 4096
LONGEST_SCHEMA = 100_000
"""Characters of a form's schema that goes along with its question, for fronts to ask each field by itself."""
SHOWN_MESSAGE = 1_000
"""Characters of each message of a prompt that a person is shown."""

_DECLINE = ConfirmationOption(DECLINE, "Decline", "The server is told that you do not want to tell it")
_CANCEL = ConfirmationOption(CANCEL, "Dismiss", "The server is told that you did not answer")


class UrlError(IsthmusError):
    """A server's URL is none that a person should be sent to."""


@dataclass(frozen=True, slots=True)
class WishMessage:
    """A message of a prompt of a server's: its blocks as MCP has them, and the text of those that are text."""

    role: Literal["user", "assistant"]
    text: str
    blocks: tuple[Mapping[str, Any], ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        """What of it is no text, by its kind."""
        blocks = (block for block in self.blocks if block.get("type") != "text")
        return tuple(str(block.get("mimeType") or block.get("type")) for block in blocks)


@dataclass(frozen=True, slots=True)
class SamplingWish:
    """What a server wants of the model. ``hints`` name models that it would like."""

    system: str
    messages: tuple[WishMessage, ...]
    maximum_tokens: int
    stop_sequences: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def form_question(server: str, message: str, form: Form, workspace: Path, problem: str = "") -> PersonQuestion:
    """The question of a form: its choices where it is one, else a document that a person fills in."""
    fields = [field.name for field in form.fields]
    about: dict[str, Any] = {"server": server, "mode": "form", "message": message, "fields": fields}
    described = _said(f"The MCP server {server} asks you", message)
    if not form.fields or form.is_direct:
        details = GenericDetails(described)
        answers = form.options() if form.fields else (ConfirmationOption(ACCEPT, "Accept"),)
        return _question(server, message, details, (*answers, _DECLINE, _CANCEL), about)
    name = f"{''.join(letter if letter.isalnum() or letter in '-_.' else '-' for letter in server)}-request.json"
    document = form.document(server, message, problem)
    schema = form.requested_schema()
    if len(json.dumps(schema)) <= LONGEST_SCHEMA:
        about[REQUESTED_SCHEMA] = schema
    # The path is where it would be; nothing is ever written there.
    details = FileDiff(name, str(workspace / name), document, formatted_diff=document)
    accept = ConfirmationOption(ACCEPT, "Send", "The server gets the document's values, as you have edited them")
    return _question(server, message, details, (accept, _DECLINE, _CANCEL), about)


def url_question(server: str, message: str, url: str, *, opens_browser: bool) -> PersonQuestion:
    """The question whether a person goes to a server's page.

    Raises:
        UrlError: nobody should be sent there.
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
    about = {"server": server, "mode": "url", "message": message, "url": url}
    return _question(server, message, GenericDetails("\n".join(lines)), (accept, _DECLINE, _CANCEL), about)


def done_question(server: str, tool: str, urls: Sequence[str]) -> PersonQuestion:
    """Whether a person is done with pages that a tool needs before it runs."""
    pages = "\n".join(f"  {url}" for url in urls)
    text = f"{tool} of the MCP server {server} is called again when you are done with:\n{pages}"
    options = (ConfirmationOption(ACCEPT, "I am done"), ConfirmationOption(CANCEL, "Give up"))
    about = {"server": server, "mode": "url", "urls": list(urls)}
    return _question(server, text, GenericDetails(text), options, about)


def sampling_question(server: str, wish: SamplingWish) -> PersonQuestion:
    """Whether a server may ask the session's model, at the person's cost."""
    lines = [f"The MCP server {server} wants the model to answer this, at your cost:"]
    if wish.system:
        lines += ["system:", *quoted(wish.system, limit=SHOWN_MESSAGE)]
    for message in wish.messages:
        kinds = ", ".join(message.others)
        lines += [f"{message.role}:{f' [{kinds}]' if kinds else ''}", *quoted(message.text, limit=SHOWN_MESSAGE)]
    lines.append(f"The answer, of at most {wish.maximum_tokens:,} tokens, goes to the server.")
    if wish.hints:
        lines.append(f"It would like: {', '.join(wish.hints)}. Your session's model is used.")
    options = (
        ConfirmationOption(ALLOW_ONCE, "Allow once"),
        ConfirmationOption(
            ALLOW_ALWAYS, f"Always allow {server}", "For the rest of this session, it may ask the model unasked"
        ),
        ConfirmationOption(CANCEL, "Reject", "The server is told"),
    )
    about = {
        "server": server,
        "messages": [{"role": item.role, "text": item.text[:SHOWN_MESSAGE]} for item in wish.messages],
        "max_tokens": wish.maximum_tokens,
    }
    return PersonQuestion(
        SAMPLING,
        server,
        f"{server} asks the model",
        GenericDetails("\n".join(lines)),
        options,
        frozenset({ALLOW_ONCE, ALLOW_ALWAYS}),
        about,
        ALLOW_ALWAYS,
    )


def host_of(url: str) -> str:
    """The host of a server's URL as it is asked for, without what merely looks like it.

    Raises:
        UrlError: it is no address of a page, or one that hides where it leads.
    """
    if len(url) > LONGEST_URL:
        raise UrlError(f"its URL has {len(url):,} characters; at most {LONGEST_URL:,} are taken")
    if any(not character.isprintable() or character.isspace() for character in url):
        raise UrlError("its URL holds characters that cannot be shown")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UrlError(f"its URL is none: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UrlError("its URL is no http(s) address")
    if parts.username is not None or parts.password is not None:
        raise UrlError("its URL has a name or password before its host, which hides where it leads")
    if not host.isascii():
        try:
            host = f"{host.encode('idna').decode('ascii')} (written {host})"
        except UnicodeError as error:
            raise UrlError("its URL's host is no name") from error
    plain = " (not encrypted)" if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1") else ""
    return f"{host}{f':{port}' if port is not None else ''}{plain}"


def _question(
    server: str,
    message: str,
    details: GenericDetails | FileDiff,
    options: tuple[ConfirmationOption, ...],
    about: JsonObject,
) -> PersonQuestion:
    accepting = frozenset(option.id for option in options) - {DECLINE, CANCEL}
    return PersonQuestion(ELICITATION, server, f"{server} asks: {_first(message)}", details, options, accepting, about)


def _said(head: str, message: str) -> str:
    return "\n".join([f"{head}:", *quoted(message)])


def _first(message: str) -> str:
    lines = quoted(message, "")
    return lines[0][:120]


def without_stop(text: str, stop_sequences: Sequence[str]) -> tuple[str, bool]:
    """The text up to where the first of the sequences stands in it, and whether one does."""
    found = [text.index(sequence) for sequence in stop_sequences if sequence and sequence in text]
    return (text[: min(found)], True) if found else (text, False)
