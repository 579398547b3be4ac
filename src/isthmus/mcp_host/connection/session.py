"""One connected session with a server, over the SDK: the handshake, listing with bounded pages, and calls.

A revision with a handshake is preferred if the server supports one: the server can then send requests and
notifications at any time. With a server that supports only the revision without a handshake, changes are reported over
a subscription.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import mcp
import mcp_types as types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp.client.session import IncomingMessage
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from isthmus import __version__
from isthmus.mcp_host.catalogue.listing import ListedTool, Listing
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.callbacks import elicitation, sampling
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.mcp_host.connection.discover_probe import SHARE, DiscoverOutcome, FirstAnswer, ask
from isthmus.mcp_host.connection.listed_entries import listed_prompt, listed_resource, listed_tool
from isthmus.mcp_host.connection.session_observer import SessionObserver
from isthmus.mcp_host.connection.transport_probe import TransportChoice
from isthmus.mcp_host.diagnosis.failures import is_closed
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.elicitation.server_requests import MAXIMUM_QUESTIONS, ServerAsking
from isthmus.mcp_host.transports.observed import observed
from isthmus.mcp_host.transports.session_refusals import SessionRefusal, refusal_of

MAXIMUM_PAGES = 50
MAXIMUM_ENTRIES = 5_000
"""Maximum number of entries of one listing; further entries are ignored."""
MAXIMUM_INSTRUCTIONS = 100_000
"""Maximum number of characters of a server's instructions; the rest is cut off."""

OPTIONAL_SHARE = 0.7
"""Share of the time for all listings after which no optional listing begins."""
LEAST_SECONDS = 0.05
PING_SECONDS = 5.0
"""Maximum wait for a sign of life of a session."""
_INCOMPLETE = "incomplete"
"""Key of the messages about missing or incomplete listings."""

LISTEN_AGAIN_SECONDS = (1.0, 5.0, 15.0, 60.0, 60.0, 60.0)
"""Delays in seconds before a lost subscription is opened again."""

OnProgress: TypeAlias = ProgressFnT

_ME = types.Implementation(name="isthmus", version=__version__)
_SDK_FOLDER = str(Path(mcp.__file__).parent)
_LOG = logging.getLogger("isthmus.mcp")

_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)


def _silence_sdk() -> None:
    """Keep the SDK's log records off the terminal, which a server could fill with a traceback for each message.

    The loggers are ``mcp`` with its children, and ``client``, a name that other libraries use too. The server's status
    reports the problems that matter.
    """
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    logging.getLogger("client").addFilter(lambda record: not record.pathname.startswith(_SDK_FOLDER))


_silence_sdk()


class McpSession:
    """The session of a connected server: its listings, and requests to it."""

    def __init__(
        self, client: Client, config: ServerConfig, dropped: dict[str, tuple[str, ...]], optional_seconds: float
    ) -> None:
        self._optional_seconds = optional_seconds
        self._client = client
        self._config = config
        self._dropped = dropped

    @property
    def reports_changes(self) -> bool:
        """Whether the server announces that it reports changes of its tools."""
        tools = self._client.server_capabilities.tools
        return tools is not None and tools.list_changed is True

    async def listing(self) -> Listing:
        """List everything again.

        Raises:
            MCPError, ValidationError: the server refused, or its answer is not MCP.
        """
        capabilities = self._client.server_capabilities
        session = self._client.session
        self._dropped.clear()
        until = time.monotonic() + self._config.connect_seconds * OPTIONAL_SHARE
        listed: list[ListedTool] = []
        # Some servers do not announce their tools. A server that announces nothing is therefore asked for tools only.
        if capabilities.tools is not None or (capabilities.prompts is None and capabilities.resources is None):
            tools = await self._pages(
                "tools/list", session.list_tools, lambda page: page.tools, is_required=capabilities.tools is not None
            )
            listed = [listed_tool(tool) for tool in tools]
        prompts: list[types.Prompt] = []
        if capabilities.prompts is not None:
            prompts = await self._optional("prompts/list", until, session.list_prompts, lambda page: page.prompts)
        resources: list[types.Resource] = []
        templates: list[types.ResourceTemplate] = []
        if capabilities.resources is not None:
            resources = await self._optional(
                "resources/list", until, session.list_resources, lambda page: page.resources
            )
            templates = await self._optional(
                "resources/templates/list",
                until,
                session.list_resource_templates,
                lambda page: page.resource_templates,
            )
        server = self._config.name
        info, discovered = self._client.server_info, session.discover_result
        return Listing(
            tuple(listed),
            tuple(listed_prompt(server, prompt) for prompt in prompts),
            (
                *(listed_resource(server, str(found.uri), found) for found in resources),
                *(listed_resource(server, found.uri_template, found) for found in templates),
            ),
            (self._client.instructions or "")[:MAXIMUM_INSTRUCTIONS],
            "" if info is None else f"{info.name} {info.version}"[:200],
            self._messages(),
            None if discovered is None else discovered.model_dump(mode="json", by_alias=True, exclude_none=True),
        )

    async def _optional(
        self, method: str, until: float, fetch: Callable[..., Awaitable[Any]], entries: Callable[[Any], list[Any]]
    ) -> list[Any]:
        """Return an optional listing; if it does not come in time, note this and return an empty list."""
        seconds = max(min(until - time.monotonic(), self._optional_seconds), LEAST_SECONDS)
        with anyio.move_on_after(seconds):
            return await self._pages(method, fetch, entries, is_required=False)
        self._note(f"no answer to {method}: none came within {seconds:.3g} s")
        return []

    async def _pages(
        self,
        method: str,
        fetch: Callable[..., Awaitable[Any]],
        entries: Callable[[Any], list[Any]],
        *,
        is_required: bool,
    ) -> list[Any]:
        """Return all pages of a listing, up to the limits; a repeated cursor ends it."""
        found: list[Any] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(MAXIMUM_PAGES):
            try:
                page = await fetch(params=types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None)
            except MCPError as error:
                if is_required or is_closed(error):
                    raise
                return found
            found += entries(page)
            cursor = page.next_cursor
            if not cursor or cursor in seen or len(found) > MAXIMUM_ENTRIES:
                break
            seen.add(cursor)
        else:
            self._note(f"{method} has more than {MAXIMUM_PAGES} pages: only the first {len(found):,} entries are used")
        if len(found) > MAXIMUM_ENTRIES:
            self._note(f"{method}: only the first {MAXIMUM_ENTRIES:,} entries are used")
        return found[:MAXIMUM_ENTRIES]

    def _note(self, text: str) -> None:
        self._dropped[_INCOMPLETE] = (*self._dropped.get(_INCOMPLETE, ()), text)

    def _messages(self) -> tuple[str, ...]:
        """Return messages about dropped entries (tools first), then about incomplete listings."""
        others = {
            method: reasons for method, reasons in self._dropped.items() if method not in ("tools/list", _INCOMPLETE)
        }
        return (
            *self._dropped.get("tools/list", ()),
            *(f"{method}: {reason}" for method, reasons in others.items() for reason in reasons),
            *self._dropped.get(_INCOMPLETE, ()),
        )

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
        """Return a prompt with its arguments filled in.

        Raises:
            MCPError: the server refused, or the connection ended.
        """
        return await self._client.session.get_prompt(name, dict(arguments))

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        """Return the contents of a resource.

        Raises:
            MCPError: the server refused, or the connection ended.
        """
        return await self._client.session.read_resource(uri)  # pyright: ignore[reportArgumentType] - a str is validated into the URL

    async def complete(self, prompt: str, argument: str, typed: str, given: Mapping[str, str]) -> list[str]:
        """Return the server's suggestions for an argument of a prompt; none if it does not support them.

        Raises:
            MCPError: the server refused, or the connection ended.
        """
        if self._client.server_capabilities.completions is None:
            return []
        found = await self._client.session.complete(
            types.PromptReference(name=prompt), {"name": argument, "value": typed}, dict(given)
        )
        return list(found.completion.values)

    async def call(self, tool: str, arguments: Mapping[str, Any], on_progress: OnProgress) -> types.CallToolResult:
        """Call a tool by the server's own name for it. If this is cancelled, the server is notified.

        Raises:
            MCPError: the server refused, or the connection ended.
        """
        # Not the session's `call_tool`: the client's also answers questions that a server of the 2026 revision asks.
        return await self._client.call_tool(tool, dict(arguments), progress_callback=on_progress)

    async def refusal(self, error: MCPError) -> SessionRefusal | None:
        """Return what is known of the session after the error of a request; the server is asked if it is unclear.

        A request is not known to have had no effect if the server answers others of the session.
        """
        found = refusal_of(error)
        if found is not SessionRefusal.POSSIBLE:
            return found
        try:
            with anyio.fail_after(PING_SECONDS):
                await self._client.session.send_request(types.PingRequest(), types.EmptyResult)
        except MCPError as answer:
            return None if refusal_of(answer) is None else SessionRefusal.CERTAIN
        except TimeoutError:
            pass
        return None


class _Incoming:
    """Messages that a server sends by itself: changes, the ends of questions, and what had to be left out."""

    def __init__(self, workspace: Path, on_change: Callable[[], None], asking: ServerAsking | None) -> None:
        self._workspace = workspace
        self._on_change = on_change
        self._asking = asking
        self.has_begun = False
        """Whether the session has begun; earlier reports of changes count for nothing, because all is listed then."""
        self.dropped: dict[str, tuple[str, ...]] = {}

    def drop(self, method: str, reasons: tuple[str, ...]) -> None:
        """Note what was left out of the answer to a method."""
        self.dropped[method] = (*self.dropped.get(method, ()), *reasons)[:50]

    async def handle(self, message: IncomingMessage) -> None:
        """Take a message that answers no request."""
        if isinstance(message, _CHANGES) and self.has_begun:
            self._on_change()
        elif isinstance(message, types.ElicitCompleteNotification) and self._asking is not None:
            self._asking.completed(message.params.elicitation_id)

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Return the workspace, for a server that asks for its roots."""
        root = types.Root(uri=self._workspace.as_uri(), name=self._workspace.name)  # pyright: ignore[reportArgumentType] - a str is validated into the URL
        return types.ListRootsResult(roots=[root])


@contextlib.asynccontextmanager
async def open_session(
    config: ServerConfig,
    transport: AbstractAsyncContextManager[Any],
    context: ConnectionContext,
    choice: TransportChoice,
    log: ServerLog,
    *,
    on_end: Callable[[], None],
    on_change: Callable[[], None],
    on_asked: Callable[[FirstAnswer], None],
    asking: ServerAsking | None = None,
) -> AsyncGenerator[McpSession, None]:
    """Open a session over `transport`, with the handshake if `choice` has one, and yield it.

    Without `asking`, the server may not ask questions. `on_end` is called when the server sends no more messages,
    `on_change` when it reports a change. `log` receives the notifications that violate MCP, `on_asked` the server's
    answer to the question before the handshake, if `choice` asks it.

    Raises:
        Exception: any error of the transport or the SDK, often in a group.
    """
    timeouts = context.timeouts
    incoming = _Incoming(context.workspace, on_change, asking)
    async with contextlib.AsyncExitStack() as stack:
        observer = SessionObserver(config.name, on_end, incoming.drop, log.leave_out)
        streams = await stack.enter_async_context(observed(transport, observer))
        is_modern = choice.is_modern
        if choice.asks_first:
            answer = await ask(*streams, _ME, min(timeouts.discover_seconds, config.connect_seconds * SHARE))
            is_modern = answer.outcome is DiscoverOutcome.MODERN_ALONE
            on_asked(answer)
        prior = _discovered(choice)
        client = Client(
            contextlib.nullcontext(streams),
            mode=_mode(prior, is_modern=is_modern),
            prior_discover=prior,
            message_handler=incoming.handle,
            list_roots_callback=incoming.roots,
            elicitation_callback=None if asking is None else elicitation(asking),
            sampling_callback=None if asking is None else sampling(asking),
            input_required_max_rounds=MAXIMUM_QUESTIONS,
            client_info=_ME,
            cache=None,
        )
        await stack.enter_async_context(client)
        incoming.has_begun = True
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await stack.enter_async_context(_listening(client, on_change))
        yield McpSession(client, config, incoming.dropped, timeouts.optional_listing_seconds)


@contextlib.asynccontextmanager
async def _listening(client: Client, on_change: Callable[[], None]) -> AsyncGenerator[None]:
    """Subscribe to changes meanwhile."""
    listening = asyncio.create_task(_listen(client, on_change))
    try:
        yield
    finally:
        listening.cancel()
        await asyncio.wait({listening}, timeout=1)


def _discovered(choice: TransportChoice) -> types.DiscoverResult | None:
    """Return the known description of a server without a handshake, so that it need not be asked."""
    if choice.discovered is None:
        return None
    try:
        return types.DiscoverResult.model_validate(choice.discovered, by_name=False)
    except ValidationError:
        return None


def _mode(prior: types.DiscoverResult | None, *, is_modern: bool) -> str:
    if prior is not None:
        return MODERN_PROTOCOL_VERSIONS[-1]
    return "auto" if is_modern else "legacy"


async def _listen(client: Client, on_change: Callable[[], None]) -> None:
    """Subscribe to changes of a server of the 2026 revision, until it refuses or the subscription fails too often."""
    attempt = 0
    while attempt < len(LISTEN_AGAIN_SECONDS):
        began = time.monotonic()
        try:
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as subscription:
                async for _event in subscription:
                    on_change()
        except MCPError:
            return  # The server does not support subscriptions.
        except Exception as error:
            _LOG.info("the subscription to an MCP server's changes was lost: %s", error)
        if time.monotonic() - began > LISTEN_AGAIN_SECONDS[-1]:
            attempt = 0
        await asyncio.sleep(LISTEN_AGAIN_SECONDS[attempt])
        attempt += 1
        on_change()  # changes since the loss were not reported
