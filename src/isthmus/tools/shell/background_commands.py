"""Shell commands that run beside the work of a session: started, listed, read and ended; none outlives this process.

Each belongs to one session and is unknown to the others. Not here: the tools by which a model uses them, see
:mod:`isthmus.tools.shell.background_tools`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.record import record
from isthmus.runtime.running_tasks import RunningTasks
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.shell.process_group import GRACE_SECONDS, ProcessGroup, process_group
from isthmus.tools.shell.shell_output import ShellOutput

MAXIMUM_RUNNING = 8
"""Maximum number of commands of one session that run at the same time."""
MAXIMUM_KEPT = 32
"""Maximum number of commands of one session, ended ones included, whose output is kept."""
MAXIMUM_OUTPUT_BYTES = 256 * 1024 * 1024
"""Maximum size of a command's output; one that prints more is ended."""
SECONDS_BETWEEN_LOOKS = 1.0
"""Time between two looks at the size of the output."""


@record
class BackgroundLaunch:
    """A command line to start. ``is_confined``: it is a sandbox around the real command.

    ``release`` is called once it has ended, or could not be started.
    """

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    is_confined: bool = False
    release: Callable[[], None] | None = None


@dataclass(slots=True)
class BackgroundCommand:
    """A command in the background. ``id`` is the process id of its leader; ``exit_code`` is None while it runs.

    ``ended_by`` says why it was ended, if it did not end by itself; ``is_told``: the model knows that it has ended.
    """

    text: str
    output: ShellOutput
    id: int = 0
    exit_code: int | None = None
    ended_by: str = ""
    is_told: bool = False
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def state(self) -> str:
        """State in a few words: ``running``, ``ended with exit code 1``."""
        if not self.ended.is_set():
            return "running"
        if self.ended_by:
            return f"ended: {self.ended_by}"
        if self.exit_code is not None and self.exit_code < 0:
            return f"ended by signal {-self.exit_code}"
        return f"ended with exit code {self.exit_code}"

    def stop(self, reason: str) -> None:
        """End it, if it runs."""
        if not self.ended.is_set() and not self.ended_by:
            self.ended_by = reason
        self.stopping.set()


class BackgroundCommands:
    """The commands in the background of all sessions in this process. ``session`` is the key of a session."""

    def __init__(self, grace_seconds: float = GRACE_SECONDS) -> None:
        self._grace_seconds = grace_seconds
        self._of_sessions: dict[str, list[BackgroundCommand]] = {}
        self._tasks = RunningTasks()

    async def start(self, session: str, text: str, launch: BackgroundLaunch, output: ShellOutput) -> BackgroundCommand:
        """Start a command; ``text`` is what the user and the model know it by.

        Raises:
            ToolFailure: too many of the session run already.
            OSError: it cannot be started.
        """
        commands = self._of_sessions.setdefault(session, [])
        running = [item for item in commands if not item.ended.is_set()]
        if len(running) >= MAXIMUM_RUNNING:
            named = ", ".join(str(item.id) for item in running)
            message = f"{MAXIMUM_RUNNING} commands run in the background already ({named}); stop one of them first"
            raise ToolFailure(message, "too_many_background_commands")
        item = BackgroundCommand(text, output)
        commands.append(item)
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks.start(self._run(item, launch, started), name="isthmus-background-command")
        try:
            await started
        except BaseException:
            item.stop("its start was cancelled")
            commands.remove(item)
            raise
        for old in [item for item in commands if item.ended.is_set()][: max(0, len(commands) - MAXIMUM_KEPT)]:
            commands.remove(old)
        return item

    def of(self, session: str) -> Sequence[BackgroundCommand]:
        """Return the commands of a session, in the order of their start."""
        return tuple(self._of_sessions.get(session, ()))

    def find(self, session: str, command_id: int) -> BackgroundCommand:
        """Return a command of a session.

        Raises:
            ToolFailure: the session has none with this id.
        """
        found = next((item for item in reversed(self.of(session)) if item.id == command_id), None)
        if found is None:
            known = ", ".join(str(item.id) for item in self.of(session)) or "none"
            message = (
                f"no command of this session in the background has the pid {command_id} (known: {known}). Those of an"
                " earlier run of the agent's program ended with it."
            )
            raise ToolFailure(message, "unknown_background_command")
        return found

    def take_news(self, session: str) -> str | None:
        """Return which commands have ended since the model was told, as text for the model; each only once."""
        ended = [item for item in self.of(session) if item.ended.is_set() and not item.is_told]
        for item in ended:
            item.is_told = True
        lines = [f"[{item.id}] {item.text.splitlines()[0][:200]}: {item.state}" for item in ended]
        return "\n".join(("Commands in the background have ended:", *lines)) if lines else None

    async def aclose(self) -> None:
        """End all commands, with everything that they started."""
        for commands in self._of_sessions.values():
            for item in commands:
                item.stop("the agent's program ended")
        await self._tasks.wait()

    async def _run(self, item: BackgroundCommand, launch: BackgroundLaunch, started: "asyncio.Future[None]") -> None:
        try:
            async with process_group(
                launch.command,
                launch.folder,
                launch.environment,
                item.output.feed,
                spares_leader=launch.is_confined,
                grace_seconds=self._grace_seconds,
            ) as group:
                item.id = group.id
                started.set_result(None)
                await self._watch(item, group)
        except Exception as error:
            if started.done():
                item.ended_by = item.ended_by or str(error)
                return
            started.set_exception(error)
        finally:
            if launch.release is not None:
                await asyncio.to_thread(launch.release)
            item.output.close()
            item.ended.set()

    async def _watch(self, item: BackgroundCommand, group: ProcessGroup) -> None:
        """Wait until the command has ended or must be ended."""
        ending = asyncio.ensure_future(group.wait())
        stopping = asyncio.ensure_future(item.stopping.wait())
        try:
            while not ending.done() and not stopping.done():
                waiting = {ending, stopping}
                await asyncio.wait(waiting, timeout=SECONDS_BETWEEN_LOOKS, return_when=asyncio.FIRST_COMPLETED)
                if item.output.size > MAXIMUM_OUTPUT_BYTES:
                    item.stop(f"it printed more than {MAXIMUM_OUTPUT_BYTES} bytes")
            if ending.done():
                item.exit_code, item.ended_by = group.exit_code, ""
            await group.terminate(also_strays=not ending.done())
            group.drain()
            if not ending.done():
                await asyncio.wait({ending}, timeout=1)
                item.exit_code = group.exit_code
        finally:
            for task in (ending, stopping):
                task.cancel()
