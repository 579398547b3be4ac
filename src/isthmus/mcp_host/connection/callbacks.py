"""Callbacks of the SDK for requests of a server; they convert between the SDK's types and plain data. Imports the SDK.

Not here: the answers, see :mod:`isthmus.mcp_host.elicitation.server_requests`.
"""

from typing import Any

import mcp_types as types
from mcp.client import ClientRequestContext
from mcp.client.session import ElicitationFnT, SamplingFnT

from isthmus.mcp_host.elicitation.server_questions import SamplingPrompt, SamplingPromptMessage
from isthmus.mcp_host.elicitation.server_requests import DeclinedError, ServerAsking

REJECTED = -1
"""MCP's error code for sampling that was rejected by the user, or by the client for the user."""


def elicitation(asking: ServerAsking) -> ElicitationFnT:
    """Return the callback for elicitations."""

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        if isinstance(params, types.ElicitRequestURLParams):
            found = await asking.elicit_url(params.message, params.url)
        else:
            found = await asking.elicit_form(params.message, params.requested_schema)
        content: Any = None if found.content is None else dict(found.content)
        action: Any = found.action
        return types.ElicitResult(action=action, content=content)

    return elicit


def sampling(asking: ServerAsking) -> SamplingFnT:
    """Return the callback for requests to the model. The request gets neither the session's contents nor tools."""

    async def sample(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        if params.tools is not None or params.tool_choice is not None:
            return types.ErrorData(code=types.INVALID_PARAMS, message="tools in sampling are not supported")
        try:
            found = await asking.sample(_prompt(params))
        except DeclinedError as error:
            return types.ErrorData(code=REJECTED, message=str(error))
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(type="text", text=found.text),
            model=found.model,
            stop_reason="maxTokens" if found.is_cut else "endTurn",
        )

    return sample


def _prompt(params: types.CreateMessageRequestParams) -> SamplingPrompt:
    hints = params.model_preferences.hints if params.model_preferences is not None else None
    return SamplingPrompt(
        params.system_prompt or "",
        tuple(_message(message) for message in params.messages),
        params.max_tokens,
        tuple(params.stop_sequences or ()),
        tuple(hint.name for hint in hints or () if hint.name),
    )


def _message(message: types.SamplingMessage) -> SamplingPromptMessage:
    blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in message.content_as_list]
    text = "\n".join(block.text for block in message.content_as_list if isinstance(block, types.TextContent))
    return SamplingPromptMessage(message.role, text, tuple(blocks))
