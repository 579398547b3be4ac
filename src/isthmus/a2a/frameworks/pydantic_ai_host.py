"""Agents of pydantic-ai behind the interface of :mod:`isthmus.agent.hosted`.

A run of the framework is one segment of a task. Its messages are stored before each request to the model, after each
response and at the end; a call is EXECUTING on the disk before its tool runs. A process that goes on with the task
gives the framework the results of calls that have run, and an error for those that were interrupted.
"""

import base64
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias, cast

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelResponse,
    UserContent,
    VideoUrl,
)
from pydantic_ai.output import NativeOutput, PromptedOutput, TextOutput

from isthmus.a2a.frameworks.pydantic_ai_files import artifact_of
from isthmus.a2a.frameworks.pydantic_ai_run import ShownRun
from isthmus.a2a.frameworks.pydantic_ai_state import DeferredCall, RunState, closed, open_calls
from isthmus.a2a.frameworks.relay import Relay
from isthmus.a2a.frameworks.shown import (
    NOT_ANSWERED,
    REJECTED,
    call_text,
    data_artifact,
    details_of,
    edited_arguments,
    jsonable,
    text_of,
)
from isthmus.agent.calls.events import cancelled_call
from isthmus.agent.hosted import ask, decision, is_allowed
from isthmus.agent.session.session import Session
from isthmus.development_tool import ToolCall
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    MessagePart,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
)

Dependencies: TypeAlias = Callable[[Session], Any]
"""Makes the dependencies of a run from the session."""


class PydanticAIAgent:
    """A pydantic-ai agent as an AgentPort; each run continues from the record of the session."""

    def __init__(self, agent: AbstractAgent[Any, Any], deps: Dependencies | None = None) -> None:
        self._agent = agent
        self._deps = deps

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Run the agent until it has answered or asks the user."""
        if session.message is None:
            return  # a slash command, of which these agents have none
        segment = _Segment(self._agent, self._deps, session, session.message)
        async with aclosing(segment.relay.events(segment.work())) as events:
            async for event in events:
                yield event


class _Segment:
    """One run of the agent, from a message or answers to the end or to questions."""

    def __init__(
        self, agent: AbstractAgent[Any, Any], deps: Dependencies | None, session: Session, message: Prompt
    ) -> None:
        self.relay = Relay()
        self._message = message
        self._agent = agent
        self._deps = deps
        self._session = session
        self._state = RunState(session)

    async def work(self) -> None:
        state, message = self._state, self._message
        if state.answer is not None:  # the process ended just before the task did; its text is void
            await self._emit(*([TextContent("", state.answer)] if state.answer else ()))
            return
        prompt, results = None if state.is_taken else content_of(message), None
        if state.questions:
            if not state.is_taken and self._takes_result(message):
                prompt = None
            if prompt is None:
                if not await self._is_answered():
                    return
                results = await self._results()
        history = state.messages
        if prompt is not None:
            history = closed(history, self._known_results(), NOT_ANSWERED)
        elif history and isinstance(history[-1], ModelResponse) and not history[-1].tool_calls:
            history = history[:-1]  # a text that was interrupted is void
        await self._run(prompt, history, results)

    async def _emit(self, *events: AgentEvent | None) -> None:
        await self.relay.emit(*(event for event in events if event is not None))

    def _takes_result(self, message: Prompt) -> bool:
        """Take a message as the result of a call that waits for one; return whether one does.

        While a question about a permission waits, a message stands in place of its answer.
        """
        state, session = self._state, self._session
        asked = [state.shown(item.call_id) for item in state.questions if not item.wants_result]
        if any(decision(session, call_id) is None for call_id in asked):
            return False
        for item in state.questions:
            if item.wants_result and item.call_id not in state.results:
                data = [part.data for part in message.content if part.data is not None]
                state.results[item.call_id] = data[0] if data else message.text
                return True
        return False

    async def _is_answered(self) -> bool:
        """Ask what was not asked yet; return whether the user has answered everything."""
        state, session = self._state, self._session
        await self._emit(state.save(state.messages, state.questions))
        for item in state.questions:
            shown = state.shown(item.call_id)
            known = session.calls.get(shown)
            if not item.wants_result and (known is None or known.proposal is None):
                details = details_of(item.tool, item.arguments, item.metadata)
                await self._emit(ask(shown, item.tool, item.arguments, details))
        if session.calls.waiting:
            return False
        for item in state.questions:
            if item.wants_result and item.call_id not in state.results:
                text = item.metadata.get("description") or item.metadata.get("question")
                text = text if isinstance(text, str) else f"{call_text(item.tool, item.arguments)}: what is the result?"
                await self._emit(AgentMessage("", text), StateChange(TaskState.INPUT_REQUIRED))
                return False
        return True

    async def _results(self) -> DeferredToolResults:
        state, session = self._state, self._session
        results = DeferredToolResults(calls=dict(state.results))
        for item in state.questions:
            if item.wants_result:
                continue
            shown = state.shown(item.call_id)
            answer, open_call = decision(session, shown), _call(session, shown)
            if open_call is not None and open_call.status.is_final:
                is_denied = answer is None or not is_allowed(answer)
                results.approvals[item.call_id] = ToolDenied(REJECTED) if is_denied else True  # see ShownRun.settled
            elif answer is None or open_call is None:
                results.approvals[item.call_id] = ToolDenied(NOT_ANSWERED)
            elif not is_allowed(answer):
                await self._emit(ToolCallUpdate(cancelled_call(open_call, "Rejected by the user")))
                results.approvals[item.call_id] = ToolDenied(REJECTED)
            else:
                details = details_of(item.tool, item.arguments, item.metadata)
                try:
                    edited = edited_arguments(item.arguments, details, answer)
                except LookupError as error:
                    content = answer.file_details.new_content if answer.file_details is not None else ""
                    await self._emit(ToolCallUpdate(cancelled_call(open_call, f"The edit was not used: {error}")))
                    text = f"It did not run: the user wants another content, which the call cannot take.\n{content}"
                    results.approvals[item.call_id] = ToolDenied(text)
                else:
                    results.approvals[item.call_id] = (
                        ToolApproved(override_args=dict(edited)) if edited is not None else True
                    )
        return results

    def _known_results(self) -> dict[str, str]:
        """Return the results of the calls that ran although the messages do not have them."""
        found: dict[str, str] = {}
        for part in open_calls(self._state.messages):
            call = _call(self._session, self._state.shown(part.tool_call_id))
            if call is not None and call.output is not None:
                found[part.tool_call_id] = text_of(call.output.structured_data or call.output.text or "")
            elif call is not None and call.error is not None:
                found[part.tool_call_id] = call.error.message
        return found

    async def _run(
        self, prompt: str | Sequence[UserContent] | None, history: Sequence[Any], results: DeferredToolResults | None
    ) -> None:
        state = self._state
        output_type: Any = self._agent.output_type
        is_several = isinstance(output_type, list | tuple)
        outputs: list[Any] = list(cast("Sequence[Any]", output_type)) if is_several else [output_type]
        shown = ShownRun(
            self.relay,
            self._session,
            state,
            None if prompt is not None else [part.tool_call_id for part in open_calls(history)],
            not any(isinstance(item, NativeOutput | PromptedOutput | TextOutput) for item in outputs),
        )
        asks = DeferredToolRequests in outputs
        has_validators = bool(getattr(self._agent, "_output_validators", ()))
        arguments: dict[str, Any] = {} if asks or has_validators else {"output_type": [*outputs, DeferredToolRequests]}
        result = await self._agent.run(
            prompt,
            message_history=history,
            deferred_tool_results=results,
            deps=self._deps(self._session) if self._deps is not None else None,
            capabilities=[shown],
            infer_name=False,
            **arguments,
        )
        output = result.output
        messages = result.all_messages()
        match output:
            case DeferredToolRequests():
                asked = [*((part, False) for part in output.approvals), *((part, True) for part in output.calls)]
                state.results = {}
                for part in output.approvals:
                    if decision(self._session, state.shown(part.tool_call_id)) is not None:
                        state.name(part.tool_call_id)  # it asks once more
                questions = [
                    DeferredCall(
                        part.tool_call_id,
                        part.tool_name,
                        jsonable(part.args_as_dict()),
                        jsonable(output.metadata.get(part.tool_call_id, {})),
                        wants_result,
                    )
                    for part, wants_result in asked
                ]
                await self._emit(state.save(messages, questions))
                await self._is_answered()
            case str():
                await shown.finish_text(output)
                await self._emit(state.save(messages, answer=output))
            case BinaryContent():
                await self._emit(artifact_of(output))
                await self._emit(state.save(messages, answer=""))
            case _:
                artifact_id = f"output-{self._message.message_id}"
                await self._emit(data_artifact(artifact_id, output), state.save(messages, answer=""))


def _call(session: Session, call_id: str) -> ToolCall | None:
    item = session.calls.get(call_id)
    return item.call if item is not None else None


def content_of(message: Prompt) -> str | Sequence[UserContent]:
    """Return the content of a message as pydantic-ai takes it: texts, files and URLs; data as JSON."""
    content = [_content(part) for part in message.content]
    return content[0] if len(content) == 1 and isinstance(content[0], str) else content


def _content(part: MessagePart) -> UserContent:
    media_type = part.media_type or "application/octet-stream"
    if part.raw is not None:
        return BinaryContent(base64.b64decode(part.raw), media_type=media_type, identifier=part.filename)
    if part.url is not None:
        kinds = {"image": ImageUrl, "audio": AudioUrl, "video": VideoUrl}
        return kinds.get(media_type.partition("/")[0], DocumentUrl)(part.url, media_type=part.media_type)
    return part.text if part.text is not None else text_of(part.data)
