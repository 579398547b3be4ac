"""The tasks of subagents in the engine: created by a call of another task, found again by its id.

The id of a subagent's task follows from its parent's id and the call's. So a call which goes on after the end of its
process finds the task that it had begun, and does not begin another one.
"""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from typing_extensions import override

from isthmus.agent.approval.policy import ApprovalMode
from isthmus.agent.session.session import Session
from isthmus.agent.subagents.child_tasks import ChildTaskError, ChildTasks, NewSubagent, child_task_id
from isthmus.client import Delivery, InvalidRequest, LimitReached, TaskNotCancelable, TaskNotFound, TaskNotResumable
from isthmus.development_tool import AgentSettings, ToolCallConfirmation
from isthmus.encoding.codec import to_json
from isthmus.engine.requests.asking import check_answers, title_of
from isthmus.engine.runs.runner import Runner
from isthmus.events import ConfirmationAccepted, Prompt
from isthmus.internal_events import AnsweredCall, FolderIncluded, SubagentBegun
from isthmus.journal.port.task_rows import NewTask, TaskRow

MAXIMUM_CHILDREN = 20
"""Maximum number of tasks that one task begins for subagents."""
ANSWERED_BY = "the task that began it"
ATTEMPTS = 20
"""Maximum number of tries when a task changes between reading it and answering."""


class EngineChildTasks(ChildTasks):
    """The tasks of subagents that ``runner`` runs."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._journal = runner.journal

    @override
    async def begin(self, parent_task_id: str, call_id: str, subagent: NewSubagent) -> str:
        task_id = child_task_id(parent_task_id, call_id)
        parent = await self._journal.task(parent_task_id)
        if parent is None:
            raise ChildTaskError(f"task {parent_task_id} was deleted")
        if (row := await self._journal.task(task_id)) is not None:
            self._runner.children.noted(row)
            await self._runner.go_on(row)
            return task_id
        if len(await self._journal.children(parent_task_id)) >= MAXIMUM_CHILDREN:
            raise ChildTaskError(
                f"this task has begun {MAXIMUM_CHILDREN} subagents, which is the maximum; do the rest without one"
            )
        session = await self._fold(parent)
        title = title_of(f"{subagent.name}: {subagent.prompt.strip() or '-'}")
        task = NewTask(task_id, task_id, parent.workspace, title, parent.user, parent=parent_task_id)
        settings = replace(
            session.settings or AgentSettings(parent.workspace),
            workspace_path=parent.workspace,
            model=subagent.model or session.choices.model,
        )
        if subagent.only_plans:
            settings = replace(settings, approval_mode=ApprovalMode.PLAN.value)
        begun = SubagentBegun(
            subagent.name,
            subagent.instructions,
            parent_task_id,
            call_id,
            subagent.tools,
            subagent.refused_tools,
            subagent.max_turns,
            tuple(AnsweredCall(call, option) for call, option in session.answered),
            session.checkpoints_key,
            self._runner.spending.left(session),
        )
        folders = [FolderIncluded(path) for path in session.choices.folders]
        try:
            taken = await self._runner.create(
                task, [Prompt(task_id, subagent.prompt, to_json(settings)), begun, *folders], is_whole_session=True
            )
        except LimitReached as error:
            raise ChildTaskError(str(error)) from error
        self._runner.children.noted(taken.row)
        return task_id

    @override
    async def follow(self, task_id: str) -> AsyncGenerator[Delivery, None]:
        row = await self._row(task_id)
        end_from = row.seq + (not row.state.ends_stream)
        async for delivery in self._runner.deliver(task_id, 0, end_from):
            yield delivery

    @override
    async def open_questions(self, parent_task_id: str, call_id: str) -> Sequence[str]:
        row = await self._journal.task(child_task_id(parent_task_id, call_id))
        if row is None or row.state.is_terminal:
            return []
        # While one of its calls runs, others may still wait.
        waiting = row.pending if row.state.is_waiting else (await self._fold(row)).calls.waiting
        return [call.tool_call_id for call in waiting]

    @override
    async def answer(self, task_id: str, confirmation: ToolCallConfirmation) -> None:
        event = ConfirmationAccepted(confirmation, ANSWERED_BY)
        for _ in range(ATTEMPTS):
            row = await self._row(task_id)
            try:
                check_answers(row, row.pending if row.state.is_waiting else (), [confirmation])
            except InvalidRequest:
                return  # It was answered before.
            if await self._runner.claim(row, [event]) is not None:
                return
        raise ChildTaskError(f"task {task_id} keeps changing; answer it in its own task")

    @override
    async def cancel(self, parent_task_id: str, call_id: str) -> None:
        with contextlib.suppress(TaskNotFound, TaskNotCancelable, TaskNotResumable):
            await self._runner.cancel(child_task_id(parent_task_id, call_id))

    async def _fold(self, row: TaskRow) -> Session:
        return await self._runner.sessions.fold(row, Session(row.context_id, user=row.user))

    async def _row(self, task_id: str) -> TaskRow:
        row = await self._journal.task(task_id)
        if row is None:
            raise TaskNotFound(f"the subagent's task {task_id} was deleted")
        return row
