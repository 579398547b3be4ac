"""A tool of an MCP server as a Tool of the agent: proposes McpDetails, calls the server, shows progress and the result.

A call has a maximum time of silence, which each progress report restarts, and a maximum total time. Cancelling it
notifies the server. Not here: connecting, and permissions.
"""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from isthmus.development_tool import ConfirmationDetails, ErrorDetails, McpDetails, ToolOutput
from isthmus.mcp_host.catalogue.catalogue import CatalogueTool
from isthmus.mcp_host.catalogue.schema_check import SchemaCheck, is_small
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.errors import NeedsLoginError, ServerLostError, ToolGoneError
from isthmus.mcp_host.elicitation.page_address import UrlError
from isthmus.mcp_host.elicitation.server_questions import ACCEPT, done_question, url_question
from isthmus.mcp_host.elicitation.server_requests import CallAsks, action_of
from isthmus.mcp_host.elicitation.url_elicitation import Page, PagesNeededError, pages_needed
from isthmus.mcp_host.results.result import (
    MAXIMUM_CHARACTERS,
    McpResult,
    Rendered,
    clean,
    marked,
    parts_of,
    render,
    said_maximum,
)
from isthmus.text.visible import with_ellipsis, without_control_characters
from isthmus.tools.port.arguments import INVALID_ARGUMENTS
from isthmus.tools.port.base import (
    Arguments,
    CallContext,
    ToolContext,
    ToolFailed,
    ToolKind,
    ToolResult,
    ToolSucceeded,
)
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.user_question import Chosen, Reply, UserQuestion

if TYPE_CHECKING:
    from mcp_types import CallToolResult

PAGE_ROUNDS = 3
"""Maximum number of times that a server may require pages to be visited before a call."""
SHOWN_ARGUMENTS = 500
"""Maximum number of characters of the arguments in a call's description."""
LONGEST_ERROR = 30_000
"""Maximum number of characters shown of a JSON-RPC error's message."""
LONGEST_PROGRESS = 500
"""Maximum number of characters of a server's progress message."""
SMALL_TEXT = MAXIMUM_CHARACTERS // 2
"""Number of characters below which a text is certainly not cut."""


class McpTool:
    """One tool of a server, under its name for the model."""

    def __init__(self, name: str, offered: CatalogueTool, connection: ServerConnection) -> None:
        self._name = name
        self._offered = offered
        self._connection = connection
        self._validator: SchemaCheck | None = None
        self._fits_for: CatalogueTool | None = None
        self._fitting: Arguments | None = None
        self._sent: Arguments = {}

    @property
    def version(self) -> str:
        """Hash of the server's definition of the tool; an approval of another version is not valid."""
        return self._now().version

    def _now(self) -> CatalogueTool:
        """Return the server's current definition of the tool; the last known one if the tool is gone."""
        found = self._connection.known.tool(self._offered.name)
        if found is not None and found is not self._offered:
            self._offered, self._validator = found, None
        return self._offered

    @property
    def name(self) -> str:
        """The name of the tool for the model."""
        return self._name

    @property
    def server_name(self) -> str:
        """The server's name in the configuration."""
        return self._connection.config.name

    @property
    def server_tool_name(self) -> str:
        """The server's own name for the tool."""
        return self._offered.name

    @property
    def description(self) -> str:
        """The server's description of the tool, with the name of the server."""
        return f"{self._now().description}\n(A tool of the MCP server {self.server_name!r}.)".strip()

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The input schema in the form that every provider accepts."""
        return self._now().parameters

    @property
    def full_parameters(self) -> Mapping[str, Any]:
        """The complete input schema as JSON Schema."""
        found = self._now()
        return found.parameters if found.full_parameters is None else found.full_parameters

    @property
    def kind(self) -> ToolKind:
        """READ if the tool claims to be read-only and the user accepts this claim of its server; otherwise OTHER."""
        is_trusted = self._connection.reads_freely
        return ToolKind.READ if self._now().is_read_only and is_trusted else ToolKind.OTHER

    def describe(self, arguments: Arguments) -> str:
        """Return a line with the tool, its server and the arguments, and a line with the server's hints, if any."""
        import json

        written = json.dumps(arguments, ensure_ascii=False, default=str) if arguments else ""
        shown = with_ellipsis(written, SHOWN_ARGUMENTS)
        found = self._now()
        # A missing hint promises nothing. "only reads" is shown even if it does not affect the permission.
        hint = "\nIts server says that it can destroy things." if found.is_destructive else ""
        hint = "\nIts server says that it only reads." if found.is_read_only else hint
        return f"{self.server_tool_name} of the MCP server {self.server_name} {shown}".rstrip() + hint

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the details for the approval, with the server and its tool.

        Raises:
            ToolFailure: the arguments do not match the tool's schema.
        """
        self._fitted(arguments)
        return McpDetails(self.server_name, self.server_tool_name)

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Call the server's tool, show its progress, and return the result. Cancelling this cancels the call."""
        arguments = self._fitted(arguments)
        proposed = context.approved.details
        if isinstance(proposed, McpDetails) and proposed != McpDetails(self.server_name, self.server_tool_name):
            message = f"{self.name} is no longer the tool that was approved; nothing was called"
            raise ToolFailure(message, "tool_changed")
        version = context.approved.version if context.approved.version is not None else self.version
        for _ in range(PAGE_ROUNDS):
            try:
                return await self._call(arguments, version, context)
            except PagesNeededError as error:
                # The server has not started the call and expects it to be repeated.
                await self._go_to(error.pages, context)
        try:
            return await self._call(arguments, version, context)
        except PagesNeededError as error:
            message = f"{self.server_tool_name} of the MCP server {self.server_name!r} keeps requiring more pages"
            raise ToolFailure(f"{message} to be visited; it was given up", "mcp_error") from error

    async def _call(self, arguments: Arguments, version: str | None, context: CallContext) -> ToolResult:
        """Make one call, and handle the server's questions during it."""
        deadline = CallDeadline(self._connection.config.silence_seconds, self._connection.timeouts.longest_call_seconds)

        async def ask(question: UserQuestion, withdrawn: "asyncio.Future[str] | None" = None) -> Reply:
            with deadline.paused():
                return await context.ask(question, withdrawn)

        async def show(progress: float, total: float | None, message: str | None) -> None:
            deadline.heard()
            context.progress(_progress_text(progress, total, message))

        asks = CallAsks(str(context.output_folder), ask)
        try:
            with self._connection.asking.call(asks):
                calling = asks.start(self._connection.call(self.server_tool_name, arguments, show, version))
                try:
                    await asyncio.wait({calling, deadline.exceeded}, return_when=asyncio.FIRST_COMPLETED)
                    if not calling.done():
                        raise self._too_long(deadline.exceeded.result())
                    return await self._result(calling.result(), context)
                finally:
                    deadline.close()
                    if not calling.done():
                        calling.cancel()
                        await asyncio.wait({calling}, timeout=1)
        except ServerLostError as error:
            raise error.failure(self.server_name) from error
        except NeedsLoginError as error:
            where = f"{self.server_tool_name} of the MCP server {self.server_name!r} was not called"
            raise error.failure(self.server_name, where, self._connection.hidden) from error
        except ToolGoneError as error:
            raise ToolFailure(str(error), "tool_changed") from error
        except ToolFailure:
            raise
        except Exception as error:
            if pages := pages_needed(error):
                raise PagesNeededError(pages) from error
            where, details, category = self._describe_error(error)
            details = clean(self._connection.hidden(details))
            raise ToolFailure(f"{where}{details}", category, for_model=f"{where}\n{marked(details)}") from error

    async def _go_to(self, pages: "Sequence[Page]", context: CallContext) -> None:
        """Ask the user to visit the pages that the server requires, and wait until this is done.

        Raises:
            ToolFailure: the user declined, or a page's URL is not acceptable.
        """
        asking = self._connection.asking
        refused = f"{self.server_tool_name} of the MCP server {self.server_name!r} needs a page that was not visited"
        for page in pages:
            try:
                question = url_question(
                    self.server_name, page.message, page.url, opens_browser=asking.open_browser is not None
                )
            except UrlError as error:
                raise ToolFailure(f"{refused}: {error}", "mcp_declined") from error
            if action_of(await context.ask(question), question) != ACCEPT:
                raise ToolFailure(f"{refused}; it was not called again", "mcp_declined")
            await asking.show(page.url)
        question = done_question(self.server_name, self.server_tool_name, [page.url for page in pages])
        with asking.completion([page.elicitation_id for page in pages]) as done:
            if done.done():
                return
            reply = await context.ask(question, done)
        if isinstance(reply, Chosen) and reply.option_id not in question.accepting:
            raise ToolFailure(f"{refused}; it was not called again", "mcp_declined")

    def _too_long(self, reason: str) -> ToolFailure:
        message = (
            f"{self.server_tool_name} of the MCP server {self.server_name!r} {reason} and was cancelled; whether it "
            "had an effect is not known. The server's `timeout` in settings.json is the maximum silence in ms."
        )
        return ToolFailure(message, "mcp_timeout")

    async def _result(self, found: "CallToolResult", context: CallContext) -> ToolResult:
        maximum = said_maximum(found.meta) or self._offered.result_characters or MAXIMUM_CHARACTERS
        # Use a thread if there is data to decode or to store; for small texts it is not worth it.
        if all(block.type == "text" and len(block.text) < SMALL_TEXT for block in found.content):
            rendered = _rendered(found, context, maximum)
        else:
            rendered = await asyncio.to_thread(_rendered, found, context, maximum)
        if found.is_error:
            error = ErrorDetails(rendered.for_user, "mcp_tool_error")
            return ToolFailed(error, rendered.for_model, rendered.media)
        shown = "\n".join((rendered.for_user, *self._warnings(found.structured_content)))
        return ToolSucceeded(ToolOutput(text=shown), rendered.for_model, rendered.media)

    def _warnings(self, structured: object) -> Sequence[str]:
        """Return warnings about invalid structured content, only for the user; the result is used unchanged."""
        schema = self._offered.output_schema
        if structured is None or schema is None or not is_small(structured):
            return ()
        validation_error = SchemaCheck(schema).validation_error(structured)
        warning = "[Warning: the structured content does not match the server's schema for it: "
        return () if validation_error is None else (warning + without_control_characters(validation_error) + "]",)

    def _describe_error(self, error: Exception) -> tuple[str, str, str]:
        """Return a description of the failed call, the server's message or other details, and the category."""
        from mcp import MCPError
        from mcp_types import INVALID_PARAMS
        from pydantic import ValidationError

        where = clean(f"{self.server_tool_name} of the MCP server {self.server_name!r}")
        if isinstance(error, MCPError):
            category = INVALID_ARGUMENTS if error.code == INVALID_PARAMS else "mcp_error"
            return f"{where} failed with the error {error.code}: ", error.message[:LONGEST_ERROR], category
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            return f"{where} sent an invalid answer: ", f"{place}: {first['msg']}", "mcp_invalid_result"
        return f"{where} failed: ", f"{error or type(error).__name__}", "mcp_error"

    def _fitted(self, arguments: Arguments) -> Arguments:
        """Return the arguments to send, without null for optional arguments that may not be null.

        Raises:
            ToolFailure: an argument does not match the schema; the message names it and the expected value.
        """
        if self._now() is self._fits_for and arguments is self._fitting:
            return self._sent  # `propose` and `run` get the same arguments.
        if self._validator is None:
            self._validator = SchemaCheck(self._offered.parameters)
        sent = dict(arguments)
        if (validation_error := self._validator.validation_error(sent)) is not None:
            sent = {name: value for name, value in arguments.items() if value is not None}
            if len(sent) == len(arguments) or self._validator.validation_error(sent) is not None:
                raise ToolFailure(f"{self.name}: {validation_error}", INVALID_ARGUMENTS)
        self._fits_for, self._fitting, self._sent = self._offered, arguments, sent
        return sent


def _rendered(found: "CallToolResult", context: ToolContext, maximum: int) -> Rendered:
    dumped = found.model_dump(mode="json", by_alias=True, exclude_none=True, include={"content"})
    result = McpResult(parts_of(dumped["content"]), found.structured_content, is_error=bool(found.is_error))
    return render(result, context.output_folder, context.tool_call_id, maximum=maximum, is_marked=True)


def _progress_text(done: float, total: float | None, message: str | None) -> str:
    share = f"{done:g}" if not total else f"{100 * done / total:.0f}% ({done:g} of {total:g})"
    return f"{share} {without_control_characters((message or '')[:LONGEST_PROGRESS])}".rstrip()


class CallDeadline:
    """Limits in seconds for the silence and the total time of a call; both are paused while the user is asked.

    The result of ``exceeded`` describes the exceeded limit, as the end of a sentence.
    """

    def __init__(self, silence: float, longest: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.exceeded: asyncio.Future[str] = self._loop.create_future()
        self._silence = silence
        self._longest = max(silence, longest)
        self._began = self._heard = self._held_at = self._loop.time()
        self._questions = 0
        self._timer = self._loop.call_later(silence, self._check)

    def heard(self) -> None:
        """Note progress of the call."""
        self._heard = self._loop.time()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Pause both limits while the block runs."""
        if not self._questions:
            self._timer.cancel()
            self._held_at = self._loop.time()
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self.heard()
                self._began += self._heard - self._held_at
                self._check()

    def close(self) -> None:
        """Stop the timer at the end of the call."""
        self._timer.cancel()
        self.exceeded.cancel()

    def _check(self) -> None:
        now = self._loop.time()
        if self.exceeded.done():
            return
        if now - self._began >= self._longest:
            self.exceeded.set_result(f"took longer than {self._longest:g} s")
        elif now - self._heard >= self._silence:
            self.exceeded.set_result(f"showed no sign of life for {self._silence:g} s")
        else:
            self._timer = self._loop.call_at(min(self._heard + self._silence, self._began + self._longest), self._check)
