"""An agent in this process: model, tools, journal, engine and editor, put together from a Setup."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from isthmus.agent.options import AgentOptions, environment_for_commands
from isthmus.agent.turn import CodingAgent
from isthmus.cli.editors import EditorDirectory
from isthmus.cli.options import Setup
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.editor_surface import EditorSurface
from isthmus.engine.workspaces import WorkspaceRule
from isthmus.journal.sqlite import SqliteJournal
from isthmus.models.base import ChatModel
from isthmus.models.choose import ModelChoice, open_model
from isthmus.tools.builtin import builtin_tools


@dataclass(slots=True)
class LazyModel:
    """The chosen model, opened once: its SDK takes a second to import, so that begins while other things go on."""

    setup: Setup
    _opening: "asyncio.Task[ChatModel] | None" = None

    @property
    def choice(self) -> ModelChoice:
        """What was chosen, and why."""
        return self.setup.model

    def begin(self) -> "asyncio.Task[ChatModel]":
        """Start to open the model in the background, unless that was done; a failure is tried again."""
        opening = self._opening
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = asyncio.create_task(asyncio.to_thread(open_model, self.choice, self.setup.environment))
            self._opening = opening
        return opening

    async def open(self) -> ChatModel:
        """The model. Raises ModelError when it cannot be opened; the next call tries again."""
        return await asyncio.shield(self.begin())

    async def aclose(self) -> None:
        """Close its connections."""
        if self._opening is not None:
            with contextlib.suppress(Exception):
                await (await self._opening).aclose()


@contextlib.asynccontextmanager
async def local_agent(
    setup: Setup, workspaces: WorkspaceRule, *, takes_over: bool = False, is_idle: bool = False
) -> AsyncGenerator[Engine]:
    """A running engine; closed at the end, when what works is left to be taken up at the next start.

    With ``takes_over`` it goes on by itself with what other processes left when they ended: under its own approval
    mode, so only a server does. An idle one opens no model and no editor.

    Raises:
        JournalError: the data folder cannot be used.
    """
    journal = await SqliteJournal.open(setup.data_dir / "journal.sqlite")
    model = LazyModel(setup)
    editors = EditorDirectory(setup.environment) if setup.use_ide and not is_idle else None
    options = AgentOptions(
        output_folder=setup.data_dir / "outputs",
        environment=environment_for_commands(setup.environment),
        policy=setup.policy,
        max_model_turns=setup.max_model_turns,
    )
    context = editors.context if editors is not None else None
    agent = CodingAgent(model.open, builtin_tools(), options, context)
    engine = Engine(agent, journal, EngineOptions(workspaces, lambda: setup.model.name, takes_over=takes_over))
    surface: asyncio.Task[None] | None = None
    try:
        if not is_idle:
            model.begin()
            await engine.start()
        if editors is not None:
            surface = asyncio.create_task(EditorSurface(engine, engine.questions, editors.find).run())
        yield engine
    finally:
        if surface is not None:
            surface.cancel()
            await asyncio.gather(surface, return_exceptions=True)
        await engine.aclose()
        if editors is not None:
            await editors.aclose()
        await model.aclose()


def rule_for(setup: Setup) -> WorkspaceRule:
    """Sessions work in the setup's workspace and below, and see only those that do."""
    return WorkspaceRule(default=setup.workspace, roots=(setup.workspace,))
