"""One session in front of a client: prompts, cancellation, and coming back to what runs or waits.

A session is a contextId of the agent. Its turns belong to the agent: they go on when the client is gone, and a client
that loads the session sees them from the beginning, and live from then on.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from isthmus.acp.front.further_folders import further_folders, without_folders
from isthmus.acp.front.left_open import LeftOpen
from isthmus.acp.front.prompts import ReadPrompt, available_commands, command_of, read_prompt
from isthmus.acp.front.replayed_updates import ReplayedUpdates
from isthmus.acp.front.session_options import SETTING, SessionOptions
from isthmus.acp.front.session_state import SessionStateReader
from isthmus.acp.front.turn import (
    BegunPrompt,
    ClientPort,
    SessionTurn,
    ended_by,
    failed,
    show_past,
    state_of,
    stop_reason,
)
from isthmus.acp.front.turn_usage import usage_of
from isthmus.acp.front.updates import UpdateEncoder
from isthmus.acp.front.wire import PromptAccepted, StateReport, TurnState
from isthmus.acp.v1.content import ContentBlock, TextBlock
from isthmus.acp.v1.sessions import PromptResponse, StopReason
from isthmus.acp.v1.updates import (
    AgentMessageChunk,
    CommandsUpdate,
    ConfigOptionsUpdate,
    ModeUpdate,
    SessionInfoUpdate,
)
from isthmus.client import (
    AgentClient,
    CommandMessage,
    CommandScope,
    ContentNotSupported,
    PromptMessage,
    TaskNotFound,
    TaskQuery,
    TaskSnapshot,
    Turn,
)
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from isthmus.fronts.task_stream import FrontTimeouts, TaskStream
from isthmus.rpc.messages import INVALID_PARAMS, INVALID_REQUEST, RpcError

if TYPE_CHECKING:
    from isthmus.development_tool import SlashCommand
    from isthmus.slash_commands.tree import CommandLine

log = logging.getLogger(__name__)

MAXIMUM_TASKS = 1000
"""Maximum number of a session's turns that are sent again."""


class FrontSession:
    """A session of one client. ``settings`` are its AgentSettings apart from what the user chooses in the client."""

    def __init__(
        self,
        agent: AgentClient,
        client: ClientPort,
        session_id: str,
        settings: JsonObject,
        options: SessionOptions,
        timeouts: FrontTimeouts = FrontTimeouts(),
    ) -> None:
        self.session_id = session_id
        self.options = options
        self._agent = agent
        self._client = client
        self._settings = settings
        self._timeouts = timeouts
        self._encoder = UpdateEncoder(str(settings["workspace_path"]))
        self._turn: SessionTurn | None = None
        self._found: list[tuple[SessionTurn, ReplayedUpdates | None]] = []
        self._opening = asyncio.Lock()
        self._background: dict[asyncio.Task[None], SessionTurn] = {}
        self._without_prompt = asyncio.Event()
        self._without_prompt.set()
        self._is_cancelled = False
        self._preparing: asyncio.Future[None] | None = None
        self._left_open = LeftOpen(agent)
        self._has_title = False
        self._state = SessionStateReader(agent, self._scope, client.update)
        self._knows_mode = False
        self._tree: Sequence[SlashCommand] = ()

    @property
    def workspace(self) -> str:
        """Folder of the session."""
        return self._encoder.workspace

    @property
    def further_folders(self) -> tuple[str, ...]:
        """Further folders in which the agent works, as absolute paths."""
        return further_folders(self._settings)

    async def leave_out(self, folders: Sequence[str]) -> None:
        """Have the agent not work in some of the further folders, and tell the user."""
        self._settings, told = without_folders(self._settings, folders)
        await self._client.update(AgentMessageChunk(TextBlock(told), str(uuid.uuid4())))

    def change_settings(self, settings: JsonObject) -> None:
        """Replace the AgentSettings, for the next prompt."""
        self._settings = settings
        self._encoder.workspace = str(settings["workspace_path"])

    async def begin_prompt(
        self, blocks: Sequence[ContentBlock], prepare: Callable[[], Awaitable[None]] | None = None
    ) -> BegunPrompt:
        """Send a prompt once ``prepare`` has returned; :meth:`finish_prompt` shows its turn.

        Raises:
            RpcError: another prompt of this client runs, or the prompt has no content.
            IsthmusError: the agent refused the prompt, or cannot be reached.
        """
        if self._is_prompting:
            raise RpcError(
                INVALID_REQUEST, "a prompt is running in this session: wait for its response, or send session/cancel"
            )
        prompt = read_prompt(blocks, self.workspace)
        self._is_cancelled = False
        self._without_prompt.clear()
        try:
            if prepare is not None:
                await self._prepare(prepare)
            return await self._begin(prompt, tuple(blocks))
        except BaseException:
            self._without_prompt.set()
            raise

    async def finish_prompt(self, begun: BegunPrompt) -> PromptResponse:
        """Show the turn of a prompt until it ends, and return how.

        Raises:
            RpcError: the turn failed.
            IsthmusError: the agent cannot be reached.
        """
        try:
            ended = await self._show_begun(begun)
        except IsthmusError as error:
            ended = error
        finally:
            self._turn = None
            self._without_prompt.set()
        if isinstance(ended, IsthmusError):
            await self._client.report(failed(ended))
            raise ended
        await self._client.report(StateReport(TurnState.IDLE, ended.stop_reason))
        return ended

    async def cancel(self) -> None:
        """Stop what runs in the session."""
        self._is_cancelled = True
        if self._preparing is not None:
            self._preparing.cancel()
        found = (turn for turn, _ in self._found)
        turns = [*self._background.values(), *found, *([self._turn] if self._turn is not None else [])]
        await asyncio.gather(*(turn.cancel() for turn in turns))

    async def replay(self) -> None:
        """Show the session from its beginning; what still runs or waits goes on after :meth:`go_on`.

        Raises:
            RpcError: a prompt of this client is running in the session.
        """
        async with self._opening:
            await self._begin_anew()
            self._encoder.begin_replay()
            try:
                for task in (tasks := await self._tasks()):
                    await self._replay_task(task)
                await self.find_mode(is_new=not tasks)
            except BaseException:
                self._leave_found()
                raise
            self._found = [found for found in self._found if not found[0].is_over]
            await self._report_found()

    async def resume(self) -> None:
        """Continue the session without its past; what still runs or waits goes on after :meth:`go_on`.

        Raises:
            RpcError: a prompt of this client is running in the session.
        """
        async with self._opening:
            await self._begin_anew()
            tasks = await self._tasks()
            await self.find_mode(is_new=not tasks)
            for task in tasks:
                if not task.state.is_terminal:
                    stream = TaskStream(self._agent, task, None, self._timeouts)
                    self._found.append((self._turn_of(stream, self._client, has_response=False), None))
            await self._report_found()

    async def go_on(self) -> None:
        """Show what still runs, and ask what waits; called when the client knows the session."""
        for turn, updates in self._found:
            task = asyncio.create_task(self._follow(turn, updates), name="ACP turn without a prompt")
            self._background[task] = turn
            task.add_done_callback(lambda done: self._background.pop(done, None))
        self._found = []

    async def find_mode(self, *, is_new: bool) -> None:
        """Take the mode that is in force, as the agent tells it or, if it does not, as the past prompts state it."""
        if (status := await self._state.read()) is not None:
            self._knows_mode = True
            self.options = self.options.in_force(
                status.approval_mode or self._encoder.settings.get(SETTING), is_new=is_new
            ).with_known_effort(status.effort, status.efforts)

    async def tell_usage(self) -> None:
        """Tell the client how full the context of the model is, if the agent knows."""
        await self._state.tell()

    async def load_commands(self) -> None:
        """Load the slash commands, and tell the client if they have changed."""
        tree = await self._agent.commands(CommandScope(context_id=self.session_id, settings=self._all_settings))
        if tree != self._tree:
            self._tree = tree
            await self._client.update(CommandsUpdate(available_commands(tree)))

    async def close(self) -> None:
        """Stop what runs in the session, and wait until its prompt has ended."""
        try:
            await self.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timeouts.cancel_seconds):
                    await self._without_prompt.wait()
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Stop showing what runs in the session; it goes on."""
        running = list(self._background)
        for task, turn in self._background.items():
            task.cancel()
            turn.leave()  # if the task has not begun
        self._leave_found()
        await asyncio.gather(*running, return_exceptions=True)

    # --- inside ---

    @property
    def _is_prompting(self) -> bool:
        return not self._without_prompt.is_set()

    def _scope(self) -> CommandScope:
        return CommandScope(context_id=self.session_id, settings=self._settings)

    @property
    def _all_settings(self) -> JsonObject:
        return {**self._settings, **self.options.settings}

    async def _tasks(self) -> Sequence[TaskSnapshot]:
        """Return the tasks of the session, oldest first."""
        found = await self._agent.list_tasks(TaskQuery(MAXIMUM_TASKS, self.session_id))
        return sorted(found.tasks, key=lambda task: (task.created_at, task.updated_at))

    def _turn_of(self, stream: TaskStream, client: ClientPort, *, has_response: bool) -> SessionTurn:
        on_reply = self._state.after_reply if has_response else None
        return SessionTurn(
            self._agent, stream, self._encoder, client, self._timeouts, has_response=has_response, on_reply=on_reply
        )

    async def _begin(self, prompt: ReadPrompt, content: tuple[ContentBlock, ...]) -> BegunPrompt:
        async with self._opening:
            await self.go_on()  # with what a load has found whose response is being sent
        waiting = await self._leave_background() or await self._left_open.take()
        if self._is_cancelled:
            return BegunPrompt(content, None, reason=StopReason.CANCELLED)
        if not self._knows_mode:
            await self._find_mode_again()
        message_id = str(uuid.uuid4())
        self._encoder.own_messages.add(message_id)
        command: CommandLine | None = None
        if prompt.text.lstrip().startswith("/"):
            await self.load_commands()
            command = command_of(prompt, self._tree)
        if command is not None:
            scope = CommandScope(context_id=self.session_id, settings=self._all_settings)
            execution = await self._agent.execute(CommandMessage(command.path, command.args, scope, message_id))
            notice = execution.message or f"/{' '.join(command.path)} could not be started"
            return BegunPrompt(content, message_id, execution.turn, notice)
        message = PromptMessage(
            prompt.text, message_id, waiting, self.session_id, self._all_settings, parts=prompt.parts
        )
        try:
            return BegunPrompt(content, message_id, await self._agent.prompt(message))
        except ContentNotSupported as error:
            raise RpcError(INVALID_PARAMS, f"prompt: {error}") from error

    async def _find_mode_again(self) -> None:
        before = self.options.mode
        await self.find_mode(is_new=True)
        if self.options.mode != before:
            await self._client.update(ModeUpdate(self.options.mode))
            await self._client.update(ConfigOptionsUpdate(self.options.config_options))

    async def _show_begun(self, begun: BegunPrompt) -> PromptResponse:
        if begun.message_id is not None:
            await self._client.report(PromptAccepted(begun.message_id, begun.content))
        if begun.turn is not None:
            return await self._show(begun.turn)
        if begun.notice:
            await self._client.update(AgentMessageChunk(TextBlock(begun.notice)))
        return PromptResponse(begun.reason.value)

    async def _show(self, begun: Turn) -> PromptResponse:
        stream = TaskStream(self._agent, begun.snapshot, begun, self._timeouts)
        self._turn = self._turn_of(stream, self._client, has_response=True)
        if self._is_cancelled:
            await self._turn.cancel()
        if not self._has_title and begun.snapshot.title:
            self._has_title = True
            await self._client.update(SessionInfoUpdate(begun.snapshot.title))
        try:
            await self._turn.run()
        except TaskNotFound:  # its session was deleted elsewhere, which cancels it
            return PromptResponse(StopReason.CANCELLED.value)
        finally:
            self._left_open.note(self._turn)
        await self.tell_usage()
        return PromptResponse(stop_reason(stream.view).value, usage_of(stream.view.models.values()))

    async def _replay_task(self, task: TaskSnapshot) -> None:
        unseen = replace(task, seq=0, state=TaskState.SUBMITTED, pending=())
        updates = ReplayedUpdates(self._client.update)
        stream = TaskStream(self._agent, unseen, None, self._timeouts)
        turn = self._turn_of(stream, replace(self._client, update=updates.update), has_response=False)
        self._found.append((turn, updates))
        await show_past(turn, task.seq)
        if turn.is_over or turn.stream.is_asking:
            await updates.finish()
        else:
            await updates.settle()

    async def _follow(self, turn: SessionTurn, updates: ReplayedUpdates | None) -> None:
        try:
            await turn.run()
        except IsthmusError as error:
            log.warning("Session %s: %s", self.session_id, error)
            self._left_open.note(turn)
        if updates is not None:
            await updates.finish()
        if not self._is_prompting and len(self._background) == 1:  # this one
            await self.tell_usage()
            await self._client.report(ended_by(turn.stream.view))

    async def _leave_background(self) -> str | None:
        """Wait for what runs without a prompt; return the task whose question a message answers instead, if any."""
        waiting: str | None = None
        for task, turn in list(self._background.items()):
            if turn.stream.is_asking:
                task.cancel()
                waiting = turn.stream.task_id
            await asyncio.wait([task])
        return waiting

    async def _prepare(self, prepare: Callable[[], Awaitable[None]]) -> None:
        """Do what must be done before a prompt, until it is cancelled."""
        self._preparing = asyncio.ensure_future(prepare())
        try:
            await self._preparing
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
        finally:
            self._preparing = None

    async def _report_found(self) -> None:
        """Report the state of the session that a client comes back to."""
        await self._client.report(state_of([turn for turn, _ in self._found]))

    def _leave_found(self) -> None:
        for turn, _ in self._found:
            turn.leave()
        self._found = []

    async def _begin_anew(self) -> None:
        if self._is_prompting:
            raise RpcError(INVALID_REQUEST, "a prompt is running in this session: wait for its response")
        self._left_open.forget()
        self._state.begin_anew()
        await self.aclose()
