"""An MCP server on stdio that asks the user during its calls: ``python asking_mcp_server.py LOG [modern]``.

Each call and each cancellation is a line of LOG. ``modern``: it has no handshake, only the revision of 2026.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any, cast

from mcp import MCPError, UrlElicitationRequiredError
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    METHOD_NOT_FOUND,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

LOG = Path(sys.argv[1])
PAGE = "http://127.0.0.1:9/account"
AGREE = {"type": "object", "properties": {"agree": {"type": "boolean", "default": True}}, "required": ["agree"]}
COLOURS = {
    "type": "object",
    "properties": {"colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]}},
}

RELEASE = {
    "type": "object",
    "required": ["release", "tell", "close"],
    "properties": {
        "release": {
            "type": "string",
            "title": "Release",
            "oneOf": [{"const": "2.8", "title": "2.8", "description": "ships on Friday"}, {"const": "2.9"}],
        },
        "note": {"type": "string", "title": "Note"},
        "tell": {"type": "string", "format": "email", "title": "Tell whom?"},
        "close": {"type": "boolean", "title": "Close it?"},
    },
}


async def no_handshake(ctx: Any, call_next: Any) -> Any:
    """Refuse ``initialize``."""
    if ctx.method == "initialize":
        raise MCPError(METHOD_NOT_FOUND, "Method not found")
    return await call_next(ctx)


is_modern = "modern" in sys.argv
server = MCPServer("asking", middleware=[no_handshake] if is_modern else [])
background: set[asyncio.Task[None]] = set()


def log(line: str) -> None:
    """Append a line to the log."""
    with LOG.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


async def elicit(context: Context[Any, Any], schema: dict[str, Any], message: str) -> ElicitResult:
    """Ask for a form as the handshake revisions do, and log it if the call is cancelled."""
    try:
        return await context.session.elicit_form(message, schema, context.request_context.request_id)
    except asyncio.CancelledError:
        log("cancelled")
        raise


@server.tool()
async def agree(context: Context[Any, Any]) -> str:
    """Ask for yes or no."""
    log("agree")
    result = await elicit(context, AGREE, "Do you agree?\x1b[2J")
    return f"{result.action} {result.content}"


@server.tool()
async def colour(context: Context[Any, Any]) -> str:
    """Ask for one of two colours."""
    log("colour")
    result = await elicit(context, COLOURS, "Which colour?")
    return f"{result.action} {result.content}"


@server.tool()
async def release(context: Context[Any, Any]) -> str:
    """Ask for a release with a form of several fields."""
    log("release")
    result = await elicit(context, RELEASE, "Which release is it for?")
    return f"{result.action} {result.content}"


@server.tool()
async def impatient(context: Context[Any, Any]) -> str:
    """Ask, and wait for the answer until a file exists."""
    log("impatient")
    session, request = context.session, context.request_context.request_id
    asked = asyncio.create_task(session.elicit_form("Quick!", AGREE, request))
    while not LOG.with_suffix(".late").exists():
        await asyncio.sleep(0.05)  # delay: pause between two looks for the file of the test
    asked.cancel()
    await asyncio.wait({asked})
    return "too late" if asked.cancelled() else "in time"


@server.tool()
async def page(context: Context[Any, Any], url: str = PAGE) -> str:
    """Send the user to a page."""
    log("page")
    result = await context.elicit_url("Log in there", url, "e-1")
    return result.action


@server.tool()
async def sample(context: Context[Any, Any]) -> str:
    """Ask the model."""
    log("sample")
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Resource: what is it?"))
    # The revision of 2026-07-28 has it no more, and servers of the ones before still ask.
    result = await context.session.create_message([message], max_tokens=9)  # pyright: ignore[reportDeprecated]
    return str(getattr(result.content, "text", result.content))


@server.tool()
async def needs_page(context: Context[Any, Any], completes: bool = False) -> str:
    """Refuse until a page was visited; with ``completes`` the server reports that visit."""
    log("needs_page")
    if LOG.read_text(encoding="utf-8").count("needs_page\n") > 1:
        return "after the page"
    if completes:
        session = context.session

        async def complete() -> None:
            while not LOG.with_suffix(".visited").exists():
                await asyncio.sleep(0.05)  # delay: pause between two looks for the file of the test
            await session.send_elicit_complete("e-2")

        task = asyncio.create_task(complete())
        background.add(task)
    raise UrlElicitationRequiredError([ElicitRequestURLParams(message="Log in", url=PAGE, elicitation_id="e-2")])


@server.tool()
async def ask_first(context: Context[Any, Any]) -> str | InputRequiredResult:
    """Ask for a form, the model and the roots in the way of the revision of 2026."""
    answers = context.input_responses
    log("ask_first" if answers is None else "answered")
    if answers is None:
        message = SamplingMessage(role="user", content=TextContent(type="text", text="Resource: what is it?"))
        return InputRequiredResult(
            input_requests={
                "form": ElicitRequest(params=ElicitRequestFormParams(message="Do you agree?", requested_schema=AGREE)),
                "model": CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=9)),
                "roots": ListRootsRequest(),
            },
            request_state="state",
        )
    form, model, roots = (cast("Any", answers[key]) for key in ("form", "model", "roots"))
    return f"{form.action} {form.content} / {model.content.text} / {roots.roots[0].uri}"


if __name__ == "__main__":
    server.run()
