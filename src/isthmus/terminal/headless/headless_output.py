"""Output formats of a headless run: ``text``, ``json`` and ``stream-json``, the last two with Gemini CLI's shapes.

Each format is a class behind ``HeadlessOutput``. They write through ``OutputStream``, which tolerates a reader that
closes the pipe. The shapes are defined in packages/core/src/output/types.ts of google-gemini/gemini-cli. Does not
import rich, because scripts pay for the time to start.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TextIO, assert_never

from typing_extensions import override

from isthmus.client import Delivery, TaskSnapshot
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import (
    AgentMessage,
    ArtifactUpdate,
    Command,
    ConfirmationAccepted,
    Prompt,
    RetryNotice,
    StateChange,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import InternalEvent
from isthmus.questions import APPROVAL_REQUIRED
from isthmus.record import record
from isthmus.task_view import TaskView
from isthmus.terminal.headless.statistics import session_metrics, stream_stats
from isthmus.text.visible import visible_line, without_escapes


@record
class RunError:
    """Reason why a run did not complete. ``code`` is the exit code, ``kind`` Gemini CLI's or our name of the error.

    ``refused`` are the calls that lacked a permission.
    """

    kind: str
    message: str
    code: int
    refused: tuple[ToolCall, ...] = ()

    @property
    def json(self) -> dict[str, Any]:
        """The error in the form of the JSON formats, without its code."""
        refused = [
            {"tool_id": call.tool_call_id, "tool_name": call.tool_name, "message": _failure_text(call)}
            for call in self.refused
        ]
        return {"type": self.kind, "message": self.message} | ({"refused_calls": refused} if refused else {})


@record
class ServerLine:
    """Status of an MCP server at the beginning of a run. ``problem`` is, for example, why it is not connected."""

    name: str
    status: str
    problem: str | None = None


def servers_json(servers: Sequence[ServerLine]) -> list[dict[str, str]] | None:
    """Return servers in the form of the JSON formats; None if there are none."""
    if not servers:
        return None
    return [
        {"name": found.name, "status": found.status} | ({"problem": found.problem} if found.problem else {})
        for found in servers
    ]


@dataclass(slots=True)
class OutputStream:
    """A text stream whose reader may close it: ``is_broken`` is True then, and nothing more is written.

    ``target`` is None if the stream was closed from the start, which does not count as broken. ``problem`` is the
    reason why text was lost; empty if nothing was, or if its reader has gone, who did not want more.
    """

    target: TextIO | None
    is_broken: bool = False
    problem: str = ""

    @property
    def is_utf8(self) -> bool:
        """Whether the stream can write every character."""
        encoding = (getattr(self.target, "encoding", None) or "utf-8").lower().replace("_", "-")
        return encoding in ("utf-8", "utf8")

    def write(self, text: str) -> None:
        """Write and flush; characters that the stream cannot encode become ``?``."""
        if self.target is None:
            self.problem = "it is closed"
        if self.target is None or self.is_broken:
            return
        if not self.is_utf8:
            encoding = self.target.encoding
            text = text.encode(encoding, "replace").decode(encoding)
        try:
            self.target.write(text)
            self.target.flush()
        except (OSError, ValueError) as error:
            self.is_broken = True
            if not isinstance(error, BrokenPipeError):
                self.problem = (error.strerror if isinstance(error, OSError) else None) or "it was closed"
            discard_buffer(self.target)

    def loss(self) -> str | None:
        """Return a line for the user about text that was lost; None if there is none."""
        return f"isthmus: the output cannot be written: {self.problem}\n" if self.problem else None


def discard_buffer(stream: TextIO) -> None:
    """Discard the buffered text of a broken stream, so that flushing it does not fail again at exit."""
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as sink:
        os.dup2(sink.fileno(), stream.fileno())


@record
class AnswerValue:
    """The JSON value of an answer."""

    value: Any

    def text(self, *, is_utf8: bool) -> str:
        """Return it as JSON in one line."""
        return json.dumps(self.value, ensure_ascii=not is_utf8)


class HeadlessOutput(Protocol):
    """One output format. The calls come in this order: started, event ..., finished; or only finished.

    ``answer`` is the value of an answer that had to fit a schema, set before the end of the run.
    """

    answer: "AnswerValue | None"

    def started(self, snapshot: TaskSnapshot, prompt: str) -> None:
        """Handle the start of the task."""
        ...

    def event(self, delivery: Delivery, view: TaskView) -> None:
        """Handle an event that ``view`` already includes."""
        ...

    def warning(self, message: str) -> None:
        """Report a problem that does not end the run."""
        ...

    def finished(self, view: TaskView, error: RunError | None) -> None:
        """Handle the end of the run; without an error the task completed."""
        ...


@dataclass(slots=True)
class TextOutput(HeadlessOutput):
    """The final text on stdout; tool calls, intermediate texts and notices on stderr."""

    out: OutputStream
    notices: OutputStream
    written: dict[str, int] = field(default_factory=dict[str, int])
    """Number of increments of a text that have gone to the notices, by message id."""
    answer: AnswerValue | None = None

    @override
    def started(self, snapshot: TaskSnapshot, prompt: str) -> None:
        pass

    @override
    def event(self, delivery: Delivery, view: TaskView) -> None:
        match delivery.event:
            case TextContent(message_id, replaces=torn) if torn is not None or message_id not in self.written:
                self.written.pop(torn or "", None)
                self._write_texts_so_far(view)
                self.written[message_id] = 0
            case ToolCallUpdate(call):
                self._write_texts_so_far(view)
                if call.status.is_final:
                    self.notices.write(_call_line(call) + "\n")
            case RetryNotice() as notice:
                self.warning(retry_text(notice))
            case _:
                pass

    @override
    def warning(self, message: str) -> None:
        self.notices.write(f"isthmus: {visible_line(message)}\n")

    @override
    def finished(self, view: TaskView, error: RunError | None) -> None:
        final = self.answer.text(is_utf8=self.out.is_utf8) if self.answer is not None else view.final_text
        if final:
            text = without_escapes(final)
            self.out.write(text if text.endswith("\n") else text + "\n")
        if error is not None:
            self.warning(error.message)

    def _write_texts_so_far(self, view: TaskView) -> None:
        """Write the intermediate texts: those before a tool call or another text."""
        for message_id, count in self.written.items():
            increments = view.messages[message_id].increments
            if text := without_escapes("".join(increments[count:])).strip("\n"):
                self.notices.write(text + "\n")
            self.written[message_id] = len(increments)


@dataclass(slots=True)
class JsonOutput(HeadlessOutput):
    """One object at the end: session_id, response, stats and, if the task did not complete, error."""

    out: OutputStream
    notices: OutputStream
    servers: Sequence[ServerLine] = ()
    session_id: str = ""
    answer: AnswerValue | None = None

    @override
    def started(self, snapshot: TaskSnapshot, prompt: str) -> None:
        self.session_id = snapshot.context_id

    @override
    def event(self, delivery: Delivery, view: TaskView) -> None:
        if isinstance(delivery.event, RetryNotice):
            self.warning(retry_text(delivery.event))

    @override
    def warning(self, message: str) -> None:
        self.notices.write(f"isthmus: {visible_line(message)}\n")

    @override
    def finished(self, view: TaskView, error: RunError | None) -> None:
        result: dict[str, Any] = {
            "session_id": self.session_id,
            "response": without_escapes(view.final_text),
            "stats": session_metrics(view),
        }
        if self.answer is not None:
            result["structured_output"] = self.answer.value
        if (servers := servers_json(self.servers)) is not None:
            result["mcp_servers"] = servers
        if error is not None:
            result["error"] = {**error.json, "code": error.code}
            self.warning(error.message)
        self.out.write(json.dumps(result, ensure_ascii=not self.out.is_utf8, indent=2) + "\n")


@dataclass(slots=True)
class StreamJsonOutput(HeadlessOutput):
    """One line of JSON per event: init, message, tool_use, tool_result, error and, last, result."""

    out: OutputStream
    notices: OutputStream
    model: str = ""
    servers: Sequence[ServerLine] = ()
    used: set[str] = field(default_factory=set[str])
    answer: AnswerValue | None = None

    @override
    def started(self, snapshot: TaskSnapshot, prompt: str) -> None:
        now = datetime.now(UTC).timestamp()
        model = snapshot.model or self.model
        self._emit("init", now, session_id=snapshot.context_id, model=model, mcp_servers=servers_json(self.servers))
        self._emit("message", now, role="user", content=prompt)

    @override
    def event(self, delivery: Delivery, view: TaskView) -> None:
        event, at = delivery.event, delivery.at
        match event:
            case TextContent() | AgentMessage(was_streamed=False):
                content, restarts = without_escapes(event.text), True if event.replaces is not None else None
                self._emit("message", at, role="assistant", content=content, delta=True, restart=restarts)
            case ToolCallUpdate():
                self._call(event.tool_call, at)
            case RetryNotice():
                self._emit("error", at, severity="warning", message=retry_text(event))
            case (
                Prompt()
                | Command()
                | AgentMessage()
                | ArtifactUpdate()
                | StateChange()
                | Thought()
                | ConfirmationAccepted()
                | InternalEvent()
            ):
                pass
            case _:
                assert_never(event)

    @override
    def warning(self, message: str) -> None:
        self._emit("error", datetime.now(UTC).timestamp(), severity="warning", message=message)
        self.notices.write(f"isthmus: {visible_line(message)}\n")

    @override
    def finished(self, view: TaskView, error: RunError | None) -> None:
        result: dict[str, Any] = {"status": "success" if error is None else "error"}
        if error is not None:
            result["error"] = error.json
            self.notices.write(f"isthmus: {visible_line(error.message)}\n")
        if self.answer is not None:
            result["structured_output"] = self.answer.value
        stats = stream_stats(view, view.duration)
        self._emit("result", datetime.now(UTC).timestamp(), **result, stats=stats)

    def _call(self, call: ToolCall, at: float) -> None:
        identity: dict[str, Any] = {"tool_id": call.tool_call_id}
        if call.tool_call_id not in self.used:
            self.used.add(call.tool_call_id)
            self._emit("tool_use", at, tool_name=call.tool_name, **identity, parameters=dict(call.input_parameters))
        if not call.status.is_final:
            return
        if call.status is ToolCallStatus.SUCCEEDED:
            self._emit("tool_result", at, **identity, status="success", output=_output_text(call))
            return
        kind = (call.error.type if call.error else None) or call.status.name.lower()
        error = {"type": kind, "message": _failure_text(call)}
        self._emit("tool_result", at, **identity, status="error", output=_output_text(call), error=error)

    def _emit(self, kind: str, at: float, **fields: object) -> None:
        stamp = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"type": kind, "timestamp": stamp, **{key: value for key, value in fields.items() if value is not None}}
        self.out.write(json.dumps(line, ensure_ascii=not self.out.is_utf8, separators=(",", ":")) + "\n")


def failed_before_task(output_format: str, error: RunError, stdout: TextIO | None, stderr: TextIO | None) -> None:
    """Print a failure from before the task was created, in the ``json`` or the ``stream-json`` format."""
    out, notices = OutputStream(stdout), OutputStream(stderr)
    output = JsonOutput(out, notices) if output_format == "json" else StreamJsonOutput(out, notices)
    output.finished(TaskView(), error)


def retry_text(notice: RetryNotice) -> str:
    """Describe a retry in one line, e.g. ``rate limited; trying again in 2 s (attempt 2 of 5)``."""
    return f"{notice.reason}; {notice.outlook}"


def _output_text(call: ToolCall) -> str | None:
    output = call.output
    if output is None:
        return None
    if output.text is not None:
        return without_escapes(output.text)
    if output.structured_data is not None:
        return json.dumps(output.structured_data, ensure_ascii=False)
    return f"wrote {output.diff.file_path}" if output.diff is not None else None


def lacks_permission(call: ToolCall) -> bool:
    """Return whether a call was refused because no user could be asked."""
    return call.error is not None and call.error.type == APPROVAL_REQUIRED


def _failure_text(call: ToolCall) -> str:
    if call.error is not None:
        return call.error.message
    return "the call was refused or cancelled" if call.status is ToolCallStatus.CANCELLED else "the call failed"


def _call_line(call: ToolCall) -> str:
    described = (call.description or "").removeprefix(f"{call.tool_name} ").strip().split("\n")
    # All lines of a shell command, since each of them has effects; the further lines of other tools are only notes.
    shown = described if isinstance(call.input_parameters.get("command"), str) else described[:1]
    what = "\n    ".join(visible_line(line) for line in shown)
    what = f" {what}" if what else ""
    if call.status is ToolCallStatus.SUCCEEDED:
        return f"[{visible_line(call.tool_name)}]{what}"
    word = "cancelled" if call.status is ToolCallStatus.CANCELLED else "failed"
    return f"[{visible_line(call.tool_name)}]{what}: {word}: {visible_line(_failure_text(call))}"
