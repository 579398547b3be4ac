"""The meaning of a provider's HTTP failure, and its message with advice for the user. Pure.

The three protocols and their imitators use different statuses, codes and words for the same failure; all knowledge
about them is here. No message contains a key.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.models.endpoint.endpoint import SHORTEST_SECRET, ModelEndpoint
from isthmus.models.endpoint.refused_size import refused_size
from isthmus.models.endpoint.retry import retry_after
from isthmus.models.port.base import ModelError, ModelErrorKind
from isthmus.models.port.received import excerpt
from isthmus.record import record

CONTEXT = re.compile(
    r"input token count.*exceeds|prompt (is |was )?too long|maximum context length|context_length_exceeded"
    r"|exceed_context_size|exceeds? the (available |model'?s? )?(maximum )?(context|input)|context (window|size|limit)"
    r"|input is too long|too many (input )?tokens|max_tokens.{0,40}exceed.{0,20}context|reduce the length"
    r"|maximum (prompt|model) length|context length (is|of) only|longer than the model's context"
    r"|exceeded (max )?context length|(exceeds? model'?s? |exceeded model )(maximum|token)|prompt token count"
    r"|range of input length",
    re.IGNORECASE | re.DOTALL,
)
MODEL = re.compile(
    r"model_not_found|models/\S+ is not found|^model: |model\b.{0,120}\b(not found|does not exist|is not supported)"
    r"|not a valid model|no such model|unknown model|invalid model",
    re.IGNORECASE | re.DOTALL,
)
KEY = re.compile(r"API_KEY_INVALID|api key (not valid|expired|not found)|invalid_api_key", re.IGNORECASE)
SPENT = re.compile(r"insufficient_quota|exceeded your current quota.*billing|credit balance|PerDay", re.IGNORECASE)
BUSY_STATUSES = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
BUSY_CODES = frozenset({"overloaded_error", "api_error", "timeout_error", "server_error", "internal", "unavailable"})


@record
class HttpFailure:
    """An error as received: the status (None inside a stream), lower-case headers and the error object."""

    status: int | None
    error: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    text: str = ""

    @property
    def message(self) -> str:
        """The server's own message."""
        return as_text(self.error.get("message")) or self.text

    @property
    def codes(self) -> frozenset[str]:
        """Every code, type and status of the error object, in lower case."""
        names = [as_text(self.error.get(name)) for name in ("type", "code", "status", "reason")]
        names += [as_text(as_object(detail).get("reason")) for detail in as_list(self.error.get("details"))]
        return frozenset(name.lower() for name in names if name)


def error_object(body: object) -> Mapping[str, Any]:
    """Return a body's error object: `{"error": {...}}`, `{"error": "text"}`, a list of one, or the object itself."""
    whole = as_object(as_list(body)[0] if as_list(body) else body)
    inner = whole.get("error")
    if isinstance(inner, str):
        return {**whole, "message": inner}
    return as_object(inner) or whole


def model_error(failure: HttpFailure, endpoint: ModelEndpoint, model: str, now: float) -> ModelError:
    """Return the error for the agent and the user. ``now`` is in seconds since the epoch."""
    kind, final = _kind(failure)
    wait = retry_after(failure.headers, failure.error, now)
    status = failure.status if failure.status is None or failure.status >= 300 else None
    text = _text(kind, failure, endpoint, model, wait, final)
    size = refused_size(failure.message, failure.error) if kind is ModelErrorKind.CONTEXT_TOO_LONG else None
    return ModelError(kind, text, status=status, retry_after=wait, final=final, size=size)


def hide_secrets(text: str, endpoint: ModelEndpoint) -> str:
    """Return the text without the endpoint's secrets, as one line."""
    for secret in endpoint.secrets:
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "[key]")
    return excerpt(text)


def _kind(failure: HttpFailure) -> tuple[ModelErrorKind, bool]:
    status, codes = failure.status, failure.codes
    if status is not None and status < 300:
        status = None
    words = " ".join((failure.message, *codes))
    kind = ModelErrorKind
    if status in (401, 403) or KEY.search(words) or codes & {"authentication_error", "permission_error"}:
        return kind.AUTHENTICATION, False
    if status == 402:
        return kind.RATE_LIMIT, True
    if status == 429 or codes & {"rate_limit_error", "rate_limit_exceeded", "resource_exhausted"}:
        return kind.RATE_LIMIT, SPENT.search(f"{words} {failure.error.get('details', '')}") is not None
    if CONTEXT.search(words) or status == 413:
        return kind.CONTEXT_TOO_LONG, False
    if MODEL.search(words) and status in (None, 400, 404, 422):
        return kind.UNKNOWN_MODEL, False
    if status in BUSY_STATUSES or (status is None and codes & BUSY_CODES):
        return kind.OVERLOADED, False
    if status is None and not codes & {"invalid_request_error", "invalid_argument"}:
        return kind.INTERRUPTED, False
    if status == 404 or (status is not None and 300 <= status < 400):
        return kind.CONFIGURATION, False
    if status is not None and status >= 500:
        return kind.OVERLOADED, False
    return kind.BAD_REQUEST, False


def _text(
    kind: ModelErrorKind, failure: HttpFailure, endpoint: ModelEndpoint, model: str, wait: float | None, final: bool
) -> str:
    provider, title = endpoint.provider, endpoint.title
    number = "" if failure.status is None or failure.status < 300 else f" (HTTP {failure.status})"
    message = hide_secrets(failure.message, endpoint).rstrip(".")
    quoted = f": {message}" if message else ""
    match kind:
        case ModelErrorKind.AUTHENTICATION:
            # A 401 may quote a part of the key, so its message is not repeated.
            names = " or ".join(provider.secret_variables)
            reason = quoted if failure.status == 403 else ""
            return f"{title} refused the key{number}{reason}. Check {names}"
        case ModelErrorKind.UNKNOWN_MODEL:
            return f"{title} has no model {model!r}{number}{quoted}. Choose another one with -m"
        case ModelErrorKind.RATE_LIMIT if final:
            return f"the quota at {title} is used up{number}{quoted}"
        case ModelErrorKind.RATE_LIMIT:
            later = "" if wait is None else f"; it asks to wait {wait:g} s"
            return f"{title} limits the rate of requests{number}{later}{quoted}"
        case ModelErrorKind.OVERLOADED:
            return f"{title} reports a failure of its own{number}{quoted}"
        case ModelErrorKind.CONTEXT_TOO_LONG:
            return f"the conversation is too long for {model}{number}{quoted}"
        case ModelErrorKind.CONFIGURATION:
            return f"{endpoint.base_url} does not speak {provider.title}'s protocol{number}{quoted}. {endpoint.advice}"
        case ModelErrorKind.INTERRUPTED:
            return f"the answer of {title} broke off{quoted}"
        case _:
            return f"{title} did not accept the request{number}{quoted}"
