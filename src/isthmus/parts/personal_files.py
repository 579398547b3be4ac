"""Finds the skills and subagents of a session: the local user's, and a trusted workspace's."""

import os
from pathlib import Path

from isthmus.agent.personal_part import PersonalFiles
from isthmus.agent.skills.finding import FoundSkills, find_skills
from isthmus.agent.subagents.finding import FoundSubagents, built_in, find_subagents
from isthmus.mcp_host.config.folder_trust import FolderTrust
from isthmus.record import record
from isthmus.runtime.brief_work import briefly
from isthmus.settings import Settings
from isthmus.settings.extensions import find_extensions
from isthmus.tools.port.tool_set import ToolScope


@record
class PersonalFilesOnDisk:
    """Finder of skills and subagents, which reads the files for each request. ``home`` is the local user's.

    ``settings`` may switch both off, or some of them by name.
    """

    home: Path
    settings: Settings
    trusts: FolderTrust

    async def of(self, scope: ToolScope) -> PersonalFiles:
        """Return the skills and subagents of a session. Other users of a server have the built-in subagents alone."""
        settings = self.settings
        if scope.user:
            return PersonalFiles(subagents=FoundSubagents(built_in()) if settings.uses_subagents else FoundSubagents())
        if not settings.uses_skills and not settings.uses_subagents:
            return PersonalFiles()
        return await briefly(self._find, scope.workspace)

    def _find(self, workspace: Path) -> PersonalFiles:
        settings, home = self.settings, self.home
        project = workspace if self.trusts(workspace) else None
        extensions = [extension.folder for extension in find_extensions(home, workspace, os.environ).enabled]
        skills, subagents = FoundSkills(), FoundSubagents()
        if settings.uses_skills:
            others = [folder / "skills" for folder in extensions]
            skills = find_skills(home, project, settings.disabled_skills, others)
        if settings.uses_subagents:
            others = [folder / "agents" for folder in extensions]
            subagents = find_subagents(home, project, settings.disabled_subagents, others)
        return PersonalFiles(skills, subagents)
