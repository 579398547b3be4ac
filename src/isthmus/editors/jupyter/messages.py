"""Messages of a Jupyter kernel that runs code, collected into a :class:`~isthmus.ide.editor.CodeExecution`. No I/O.

The messages are documented by "Messaging in Jupyter" (jupyter-client.readthedocs.io), as JSON objects. Images stay
images; any other output becomes text: HTML, SVG and widgets have a text form too. Messages of other frontends'
executions are ignored.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, cast
from uuid import uuid4

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.ide.editor import CodeExecution, EditorError, ExecutionImage, ExecutionOutput, ExecutionText
from isthmus.record import record
from isthmus.text.visible import without_control_characters

PROTOCOL_VERSION: Final = "5.3"

_IMAGES: Final = ("image/png", "image/jpeg")
_TEXTS: Final = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html", "image/svg+xml")


def execute_request(code: str, session: str) -> JsonObject:
    """Return the message that runs code, with its ``msg_id`` in the header; the code cannot read from stdin."""
    content: dict[str, Any] = {
        "code": code,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": True,
    }
    return _request("execute_request", content, session)


def info_request(session: str) -> JsonObject:
    """Return the message that asks the kernel about itself; it answers on the shell channel, when its turn comes."""
    return _request("kernel_info_request", {}, session)


def _request(kind: str, content: JsonObject, session: str) -> JsonObject:
    header = {
        "msg_id": uuid4().hex,
        "session": session,
        "username": "isthmus",
        "date": datetime.now(UTC).isoformat(),
        "msg_type": kind,
        "version": PROTOCOL_VERSION,
    }
    return {
        "header": header,
        "parent_header": {},
        "metadata": {},
        "content": content,
        "channel": "shell",
        "buffers": [],
    }


@dataclass(slots=True)
class _Shown:
    """One output: an image, or text in parts. The kernel may replace it by its ``display_id``."""

    image: ExecutionImage | None = None
    parts: list[str] = field(default_factory=list[str])
    length: int = 0
    is_stream: bool = False
    display_id: str | None = None

    def take(self, other: "_Shown") -> None:
        """Replace the output by another one."""
        self.image, self.parts, self.length = other.image, other.parts, other.length

    def add(self, text: str) -> None:
        """Append text."""
        self.parts.append(text)
        self.length += len(text)


class KernelDiedError(EditorError):
    """The kernel ended or was restarted, before or while it ran the code."""


@record
class OutputLimits:
    """Limits of the output of one execution; what is left out is counted."""

    text_characters: int = 1_000_000
    images: int = 20
    image_bytes: int = 20 * 1024 * 1024
    """Maximum size of all images together."""
    outputs: int = 1000


class RunningExecution:
    """Outputs of one execute_request; :meth:`feed` takes every message of the kernel."""

    def __init__(self, message_id: str, limits: OutputLimits = OutputLimits()) -> None:
        self._id = message_id
        self._limits = limits
        self.has_started = False
        self.asked_after: set[str] = set()
        """Ids of the questions that were sent on the shell channel after the code."""
        self._shown: list[_Shown] = []
        self._clear_at_next = False
        self._is_idle = False
        self._has_reply = False
        self._cut_characters = 0
        self._cut_images = 0
        self._cut_outputs = 0
        self._is_error = False
        self._traceback: str | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the kernel has run the code; the reply may still be on its way."""
        return self._is_idle

    @property
    def is_finished(self) -> bool:
        """Whether all messages have come."""
        return self._is_idle and self._has_reply

    def feed(self, message: Mapping[str, Any]) -> None:
        """Take one message of the iopub or the shell channel.

        Raises:
            KernelDiedError: the kernel, or the server that watches it, reports that it died or was restarted.
            EditorError: the kernel refused to run the code.
        """
        kind, content = _kind(message), as_object(message.get("content"))
        if kind == "status" and content.get("execution_state") in ("dead", "restarting", "autorestarting"):
            raise KernelDiedError("the kernel died or was restarted; its variables are lost")
        parent = as_object(message.get("parent_header")).get("msg_id")
        if parent in self.asked_after and kind == "kernel_info_reply" and not self.has_started:
            # The kernel takes messages in their order: it has run the code by now if it has got it.
            if self._has_reply:
                raise EditorError("the kernel was still starting when it ran the code, and the output was lost")
            raise KernelDiedError("the kernel was restarted and has not received the code, which did not run")
        if parent != self._id:
            return
        match kind:
            case "status":
                self.has_started = self.has_started or content.get("execution_state") == "busy"
                self._is_idle = self._is_idle or content.get("execution_state") == "idle"
            case "stream":
                self._add_stream(str(content.get("text", "")))
            case "execute_result" | "display_data":
                self._clear_if_waiting()
                self._add(self._display(content))
            case "update_display_data":
                self._replace(_display_id(content), content)
            case "clear_output":
                self._clear_at_next = content.get("wait") is True
                if not self._clear_at_next:
                    self._clear()
            case "error":
                self._is_error = True
                self._traceback = self._traceback_of(content)
            case "execute_reply":
                self._has_reply = True
                self._replied(content)
            case _:
                pass  # comm messages of widgets, debug events, the echo of the code

    def result(self) -> CodeExecution:
        """Return the outputs so far, in order; the traceback last."""
        outputs: list[ExecutionOutput] = []
        for shown in self._shown:
            text = "".join(shown.parts)
            if shown.image is not None:
                outputs.append(shown.image)
            elif text := _as_on_a_terminal(text) if shown.is_stream else text:
                outputs.append(ExecutionText(text))
        if self._cut:
            outputs.append(ExecutionText(f"[output left out: {self._cut}]"))
        if self._traceback is not None:
            outputs.append(ExecutionText(self._traceback))
        return CodeExecution(tuple(outputs), self._is_error)

    @property
    def _cut(self) -> str:
        """Description of the output that was left out; empty if it is whole."""
        found: list[str] = []
        if self._cut_characters:
            found.append(f"{self._cut_characters} characters past the first {self._limits.text_characters}")
        if self._cut_images:
            mebibytes = self._limits.image_bytes // 1024**2
            found.append(f"{self._cut_images} images past {self._limits.images} or {mebibytes} MiB")
        if self._cut_outputs:
            found.append(f"{self._cut_outputs} outputs past the first {self._limits.outputs}")
        return ", ".join(found)

    def _replied(self, content: JsonObject) -> None:
        match content.get("status"):
            case "aborted":
                raise EditorError("the kernel did not run the code: a cell that ran before it failed; ask again")
            case "error":
                self._is_error = True
                self._traceback = self._traceback or self._traceback_of(content)
            case _:
                for payload in as_list(content.get("payload")):
                    fields = as_object(payload)
                    if fields.get("source") == "page":  # the pager of `name?`
                        self._add(self._text(_plain(as_object(fields.get("data")))))

    def _add_stream(self, text: str) -> None:
        self._clear_if_waiting()
        text = self._within(text)
        if not text:
            return
        last = self._shown[-1] if self._shown else None
        if last is None or not last.is_stream:
            last = _Shown(is_stream=True)
            self._add(last)
        last.add(text)

    def _add(self, shown: _Shown | None) -> None:
        self._clear_if_waiting()
        if shown is not None and len(self._shown) >= self._limits.outputs:
            self._cut_outputs += 1
        elif shown is not None:
            self._shown.append(shown)

    def _replace(self, display_id: str | None, content: JsonObject) -> None:
        # The display may belong to an earlier execution; then there is none here.
        places = [shown for shown in self._shown if display_id is not None and shown.display_id == display_id]
        for shown in places:
            shown.take(_Shown())  # so that the limits do not count the old output
        for shown in places:
            shown.take(self._display(content) or _Shown())

    def _display(self, content: JsonObject) -> _Shown | None:
        data = as_object(content.get("data"))
        for kind in _IMAGES:
            if kind in data and (decoded := _decoded(data[kind])) is not None:
                images = [len(shown.image.data) for shown in self._shown if shown.image is not None]
                has_room = sum(images) + len(decoded) <= self._limits.image_bytes
                if len(images) < self._limits.images and has_room:
                    return _Shown(ExecutionImage(decoded, kind), display_id=_display_id(content))
                self._cut_images += 1
                return None
        return self._text(_plain(data), _display_id(content))

    def _text(self, text: str, display_id: str | None = None) -> _Shown:
        text = self._within(text)
        return _Shown(None, [text], len(text), display_id=display_id)

    def _within(self, text: str) -> str:
        free = max(self._limits.text_characters - sum(shown.length for shown in self._shown), 0)
        self._cut_characters += max(len(text) - free, 0)
        return text[:free]

    def _traceback_of(self, content: JsonObject) -> str:
        lines = [str(line) for line in as_list(content.get("traceback"))]
        text = "\n".join(lines) or f"{content.get('ename', 'Error')}: {content.get('evalue', '')}"
        return without_control_characters(text)[-self._limits.text_characters :]

    def _clear_if_waiting(self) -> None:
        if self._clear_at_next:
            self._clear_at_next = False
            self._clear()

    def _clear(self) -> None:
        self._shown.clear()
        self._cut_characters = self._cut_images = self._cut_outputs = 0


def _kind(message: Mapping[str, Any]) -> str:
    return str(message.get("msg_type") or as_object(message.get("header")).get("msg_type"))


def _display_id(content: JsonObject) -> str | None:
    found = as_object(content.get("transient")).get("display_id")
    return found if isinstance(found, str) else None


def _joined(value: object) -> str:
    return "".join(str(line) for line in cast("list[object]", value)) if isinstance(value, list) else str(value)


def _plain(data: JsonObject) -> str:
    """Return the text form of a value: its plain text, which nearly every value has, or the source of another form."""
    for kind in _TEXTS:
        if kind in data:
            return without_control_characters(_joined(data[kind]))
    return f"[{', '.join(data)}: has no text form]" if data else ""


def _decoded(value: object) -> bytes | None:
    try:
        return base64.b64decode("".join(_joined(value).split()), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _as_on_a_terminal(text: str) -> str:
    """Return the text as a terminal shows it, where progress bars overwrite their line."""
    lines = text.replace("\r\n", "\n").split("\n")
    return without_control_characters("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))
