"""invoke_agent: gives a part of the work to a subagent, under Gemini CLI's name and with its arguments.

The subagent works in a task of its own, with a conversation of its own; its last message is the result. The call only
follows that task: it may go on in another process, and the questions of the task are asked through it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from isthmus.agent.subagents.activity import activity, changed_files
from isthmus.agent.subagents.child_tasks import ChildTaskError, ChildTasks, NewSubagent
from isthmus.agent.subagents.definition import SubagentDefinition
from isthmus.client import TaskNotFound
from isthmus.development_tool import ConfirmationDetails, ErrorDetails, ToolCallConfirmation, ToolOutput
from isthmus.events import TaskState
from isthmus.questions import APPROVAL_REQUIRED
from isthmus.task_view import TaskView
from isthmus.text.visible import single_line, with_ellipsis
from isthmus.tools.port.base import (
    Arguments,
    CallContext,
    ModelTokens,
    ToolContext,
    ToolFailed,
    ToolKind,
    ToolResult,
    ToolSucceeded,
    ToolWaits,
)
from isthmus.tools.port.failure import ToolFailure

INVOKE_AGENT = "invoke_agent"
USUAL_TURNS = 30
"""Maximum number of model messages of a subagent whose definition says nothing else."""
USUAL_MINUTES = 10
"""Maximum time in minutes that a subagent works without a question, if its definition says nothing else."""
MAXIMUM_RESULT = 40_000
"""Maximum length of a result for the model in characters."""
ABOUT_CHARACTERS = 100


class InvokeAgent:
    """Begins one of ``definitions`` for the task ``task_id``."""

    name = INVOKE_AGENT
    kind = ToolKind.READ

    def __init__(self, definitions: Sequence[SubagentDefinition], tasks: ChildTasks, task_id: str) -> None:
        self._definitions = {definition.name: definition for definition in definitions}
        self._tasks = tasks
        self._task_id = task_id
        listed = "\n".join(f"- {one.name}: {one.description}" for one in definitions)
        self.description = (
            "Gives a part of the work to a subagent: an agent with a conversation of its own, which sees nothing of"
            " this one and gives back only its last message. For searches through much code whose steps you do not"
            " need, and for parts that stand alone; what a few calls find out, find out yourself. The subagents are:\n"
            f"{listed}"
        )
        self.parameters: Mapping[str, Any] = {
            "type": "object",
            "properties": {
                "agent_name": {
                    "type": "string",
                    "enum": list(self._definitions),
                    "description": "The name of the subagent.",
                },
                "prompt": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The whole task: what is known, what is wanted, and what the last message must say.",
                },
            },
            "required": ["agent_name", "prompt"],
        }

    def describe(self, arguments: Arguments) -> str:
        """Return the name of the subagent and the beginning of its task."""
        definition, prompt = self._order(arguments)
        return f"{definition.name}: {with_ellipsis(single_line(prompt), ABOUT_CHARACTERS)}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments; what the subagent does is asked when it does it."""
        self._order(arguments)
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Follow the subagent to its end.

        Raises:
            ToolFailure: it waits for a user.
        """
        result = await self.follow(arguments, context, {})
        if isinstance(result, ToolWaits):
            raise ToolFailure(f"{self.name}: the subagent waits for a user", APPROVAL_REQUIRED)
        return result

    async def follow(
        self, arguments: Arguments, context: CallContext, answers: Mapping[str, ToolCallConfirmation]
    ) -> ToolResult | ToolWaits:
        """Begin the subagent, or find the one that this call has begun, and follow it until it has ended or asks."""
        definition, prompt = self._order(arguments)
        view = TaskView()
        try:
            child = await self._tasks.begin(self._task_id, context.tool_call_id, _new(definition, prompt))
            for confirmation in answers.values():
                await self._tasks.answer(child, confirmation)
            minutes = definition.minutes or USUAL_MINUTES
            try:
                async with asyncio.timeout(minutes * 60):
                    await self._follow(child, view, context)
            except TimeoutError:
                await self.abandon(context.tool_call_id)
                message = f"{definition.name} worked for {minutes} minutes without an end, and was stopped"
                return _failed(message, "timeout", child, view)
        except (ChildTaskError, TaskNotFound) as error:
            raise ToolFailure(f"{self.name}: {error}", "subagent_error") from error
        return _result(definition, child, view)

    async def open_questions(self, tool_call_id: str) -> Sequence[str]:
        """Return the ids of the calls with which the subagent waits for the user now."""
        return await self._tasks.open_questions(self._task_id, tool_call_id)

    async def abandon(self, tool_call_id: str) -> None:
        """Cancel the subagent of a call."""
        await self._tasks.cancel(self._task_id, tool_call_id)

    async def _follow(self, child: str, view: TaskView, context: CallContext) -> None:
        shown = ""
        async with aclosing(self._tasks.follow(child)) as deliveries:
            async for delivery in deliveries:
                view.apply(delivery)
                if (now := activity(view)) != shown:
                    shown = now
                    context.progress(shown)

    def _order(self, arguments: Arguments) -> tuple[SubagentDefinition, str]:
        """Return the subagent that is to work, and its prompt."""
        name: object = arguments.get("agent_name")
        prompt: object = arguments.get("prompt")
        if not isinstance(name, str) or name not in self._definitions:
            expected = ", ".join(self._definitions)
            raise _invalid(f"agent_name: expected one of {expected}; received {str(name)[:100]!r}")
        if not isinstance(prompt, str) or not prompt.strip():
            raise _invalid(f"prompt: expected a text that is not blank; received {str(prompt)[:100]!r}")
        if unknown := sorted(set(arguments) - {"agent_name", "prompt"}):
            raise _invalid(f"expected agent_name and prompt alone; received also {unknown[0][:100]!r}")
        return self._definitions[name], prompt


def _invalid(problem: str) -> ToolFailure:
    return ToolFailure(f"{INVOKE_AGENT}: {problem}", "invalid_arguments")


def _new(definition: SubagentDefinition, prompt: str) -> NewSubagent:
    return NewSubagent(
        definition.name,
        definition.instructions,
        prompt,
        definition.tools,
        definition.refused_tools,
        definition.model,
        definition.max_turns or USUAL_TURNS,
        only_plans=definition.only_plans,
    )


def _result(definition: SubagentDefinition, child: str, view: TaskView) -> ToolResult | ToolWaits:
    if view.questions:
        return ToolWaits(tuple(item.call for item in view.questions))
    answer = with_ellipsis(view.final_text.strip(), MAXIMUM_RESULT)
    if view.state is not TaskState.COMPLETED:
        why = view.error or f"its task is {view.state.value}"
        return _failed(f"{definition.name} did not finish: {why}", "subagent_failed", child, view, answer)
    refused = dict.fromkeys(
        item.call.tool_name
        for item in view.calls.values()
        if item.call.error is not None and item.call.error.type == APPROVAL_REQUIRED
    )
    if refused:
        message = f"{definition.name} was refused calls that need a user's permission: {', '.join(refused)}"
        return _failed(message, APPROVAL_REQUIRED, child, view, answer)
    if not answer:
        return _failed(f"{definition.name} ended without an answer", "subagent_failed", child, view)
    return ToolSucceeded(ToolOutput(text=answer), answer, tokens=_tokens(child, view), changed=changed_files(view))


def _failed(message: str, category: str, child: str, view: TaskView, answer: str = "") -> ToolFailed:
    for_model = f"{message}\nIts last message was:\n{answer}" if answer else message
    return ToolFailed(
        ErrorDetails(message, category), for_model, tokens=_tokens(child, view), changed=changed_files(view)
    )


def _tokens(child: str, view: TaskView) -> tuple[ModelTokens, ...]:
    return tuple(
        ModelTokens(
            *(model, use.requests, use.input_tokens, use.output_tokens, use.cached_tokens, use.thought_tokens),
            *(use.cost, use.unpriced, child),
        )
        for model, use in view.models.items()
    )
