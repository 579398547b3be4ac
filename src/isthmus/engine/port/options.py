"""Options of an engine: what its agents may do, and what it calls."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

from isthmus.agent.approval.session_policy import check_agent_settings
from isthmus.encoding.codec import JsonObject
from isthmus.engine.port.placement import EVERY_TASK, Placement
from isthmus.engine.port.retention import MAXIMUM_SIZE, DeleteFiles
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import MessagePart
from isthmus.media import Media
from isthmus.record import record
from isthmus.runtime.telemetry import NO_TELEMETRY, Telemetry

CheckSettings: TypeAlias = Callable[[JsonObject, Path, bool], Awaitable[object]]
"""Function that raises an InvalidRequest for AgentSettings in a folder that the agent does not take.

The last argument is whether this client may bring MCP servers that are commands.
"""


async def _check_form(settings: JsonObject, folder: Path, brings_programs: bool) -> None:
    check_agent_settings(settings)


CopyFiles: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Function that copies the files of a task, by its id, for another one."""
KeepFiles: TypeAlias = Callable[
    [str, Sequence[MessagePart], Callable[[], Awaitable[str | None]]], Awaitable[tuple[Media, ...]]
]


@record
class EngineOptions:
    """Options of an engine.

    Agents may work only in the folders that ``workspaces`` allows, and only tasks there are seen. ``model_name``
    returns the agent's own model, which is shown with events. With ``takes_over`` the tasks that an ended process left
    working are continued by themselves, and open questions are shown in editors; otherwise only the tasks that a client
    asks for. When the journal takes more than ``maximum_size`` bytes, ended tasks are removed, the oldest first, and
    their files by ``delete_files``. ``copy_files`` copies the files of a task for another one. ``check_settings``
    raises an InvalidRequest that names the key if the agent does not accept these AgentSettings, as received, in a
    folder; then no task is created. ``keep_files`` stores the parts of a message other than text as files of the task,
    for agents that read files; it may call the function it is given for the name of the message's model, None for the
    agent's own. ``on_task_end`` is called with the id of each task
    whose work has ended here, successfully or not. ``brings_programs``: the client of the engine itself may bring MCP
    servers that are commands; clients of other views of it may not. Tasks for which ``placement`` has no free slot or
    not their label wait in the journal's queue. ``telemetry`` takes what happens, for those who operate the program.
    """

    workspaces: WorkspaceRule = field(default_factory=WorkspaceRule)
    model_name: Callable[[], str] = str
    takes_over: bool = True
    maximum_size: int | None = MAXIMUM_SIZE
    delete_files: DeleteFiles | None = None
    copy_files: CopyFiles | None = None
    check_settings: CheckSettings = _check_form
    brings_programs: bool = False
    on_task_end: Callable[[str], None] | None = None
    keep_files: KeepFiles | None = None
    placement: Placement = EVERY_TASK
    telemetry: Telemetry = NO_TELEMETRY
