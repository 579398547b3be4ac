"""Choices that the user, a client and the agent have made for the rest of a session. Pure."""

from dataclasses import dataclass
from typing import assert_never

from isthmus.agent.session.added_folders import AddedFolders
from isthmus.development_tool import AgentSettings, merge_agent_settings
from isthmus.encoding.codec import JsonObject
from isthmus.internal_events import AgentRecord, EffortChosen, FolderIncluded, ModelChosen, ToolsLoaded, WorktreeUsed
from isthmus.models.port.base import DEFAULT_EFFORT


@dataclass(slots=True)
class Choices:
    """The choices that are in force, each of which replaces an earlier one or is added to those before."""

    settings: AgentSettings | None = None
    """The AgentSettings that prompts and commands brought, each merged into those before."""
    model: str | None = None
    """The model that AgentSettings or a command chose last; None for the agent's own."""
    effort: str | None = None
    """The effort that AgentSettings or a command chose last; None for the agent's own."""
    unsaid: tuple[str | None, str | None] | None = None
    """The model and the effort before AgentSettings chose others, until a model has answered or a command chose."""
    folders: tuple[str, ...] = ()
    """The further folders that the user has added to the session."""
    worktrees: tuple[str, ...] = ()
    """The folders of its worktree of a repository on the machines that worked on it, the last one last."""
    loaded_tools: tuple[str, ...] | None = None
    """The tools that were loaded on demand or called, in order; None while the model gets the schemas of all tools."""
    record: JsonObject | None = None
    """The last AgentRecord of the session, with those merged into it."""
    _merged_record: dict[str, object] | None = None
    """The record if it was merged; it is changed in place, as there may be thousands of members."""

    @property
    def added_folders(self) -> AddedFolders:
        """The further folders of the session."""
        return AddedFolders(self.folders, self.settings.additional_directories if self.settings is not None else ())

    def take(
        self, event: FolderIncluded | WorktreeUsed | ModelChosen | EffortChosen | ToolsLoaded | AgentRecord
    ) -> None:
        """Keep a choice that the user or the agent has made."""
        match event:
            case FolderIncluded(path):
                self.folders = (*self.folders, path)
            case WorktreeUsed(folder):
                self.worktrees = (*self.worktrees, folder)
            case ModelChosen(model):
                self.model, self.unsaid = model, None
            case EffortChosen(effort):
                self.effort, self.unsaid = effort, None
            case ToolsLoaded(names):
                self.load_tools(*names)
            case AgentRecord(data, merges):
                if merges:
                    self._merge_record(data)
                else:
                    self.record, self._merged_record = data, None
            case _:
                assert_never(event)

    def take_settings(self, settings: JsonObject) -> AgentSettings:
        """Merge AgentSettings into those before, and return them; a model or an effort that they name is chosen."""
        merged = self.settings = merge_agent_settings(self.settings, settings)
        before = (self.model, self.effort)
        if "model" in settings:
            self.model = merged.model or None
        if "effort" in settings:
            self.effort = None if merged.effort in (None, "", DEFAULT_EFFORT) else merged.effort
        if self.unsaid is None and before != (self.model, self.effort):
            self.unsaid = before
        return merged

    def load_tools(self, *names: str) -> None:
        """Add tools to those whose schemas the model gets."""
        self.loaded_tools = tuple(dict.fromkeys((*(self.loaded_tools or ()), *names)))

    def use_tools(self, *names: str) -> None:
        """Add tools that were called, unless the model gets the schemas of all."""
        if self.loaded_tools is not None:
            self.load_tools(*names)

    def _merge_record(self, changes: JsonObject) -> None:
        if self._merged_record is None:
            self._merged_record = dict(self.record or {})
        for name, value in changes.items():
            if value is None:
                self._merged_record.pop(name, None)
            else:
                self._merged_record[name] = value
        self.record = self._merged_record
