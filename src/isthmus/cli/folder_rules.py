"""What the settings forbid to the sessions of a folder, which need not be the folder that the program was started in.

A project's guards count in a trusted folder; its editor is asked about that where it makes a difference.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from isthmus.mcp_host.trust import FolderTrust
from isthmus.settings import FolderRules, load_folder_rules


@dataclass(frozen=True, slots=True)
class RulesOfFolders:
    """Reads the rules of folders anew for each question.

    Those of ``start``, the folder that the program was started in, hold also for sessions in folders below it.
    ``meet`` connects to the editor that has a folder open, so that ``trusts`` has its word.
    """

    start: Path
    home: Path
    environment: Mapping[str, str]
    trusts: FolderTrust
    meet: Callable[[Path], Awaitable[None]] | None = None

    async def of(self, folder: Path) -> FolderRules:
        """Return what is forbidden in a folder.

        Raises:
            SettingsError: a settings file is not JSON, or a value has the wrong type.
        """
        rules = await self._of_project(folder)
        return rules | await self._of_project(self.start) if self.start in folder.parents else rules

    async def _of_project(self, folder: Path) -> FolderRules:
        untrusted = await asyncio.to_thread(self._load, folder, is_trusted=False)
        trusted = await asyncio.to_thread(self._load, folder, is_trusted=True)
        if trusted == untrusted:
            return untrusted
        if self.meet is not None:
            await self.meet(folder)
        return trusted if await asyncio.to_thread(self.trusts, folder) else untrusted

    def _load(self, folder: Path, *, is_trusted: bool) -> FolderRules:
        return load_folder_rules(folder, self.home, self.environment, is_trusted=is_trusted)
