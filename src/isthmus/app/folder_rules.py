"""What the settings forbid to the sessions of a folder, which need not be the folder that the program was started in.

A project's guards count in a trusted folder; its editor is asked about that where it makes a difference.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from isthmus.mcp_host.config.folder_trust import FolderTrust
from isthmus.settings import FolderRules, SettingsError, load_folder_rules

log = logging.getLogger(__name__)
LOGGED_RULES = 256
"""Maximum number of rules that are known to stand in the log; after as many they are logged anew."""


@dataclass(frozen=True, slots=True)
class RulesOfFolders:
    """Reads the rules of folders anew for each question.

    Those of ``start``, the folder that the program was started in, hold also for sessions in folders below it.
    ``meet`` connects to the editor that has a folder open, so that ``trusts`` has its word.
    ``names_files``: the texts hold the paths of settings files. Without it, for clients of a server, the log does.
    """

    start: Path
    home: Path
    environment: Mapping[str, str]
    trusts: FolderTrust
    meet: Callable[[Path], Awaitable[None]] | None = None
    names_files: bool = True
    _logged: set[FolderRules] = field(default_factory=set[FolderRules], init=False, compare=False)

    async def of(self, folder: Path) -> FolderRules:
        """Return what is forbidden in a folder.

        Raises:
            SettingsError: a settings file is not JSON, or a value has the wrong type.
        """
        try:
            rules = await self._of(folder, names_files=True)
            if self.names_files or rules == FolderRules():
                return rules
            self._log(folder, rules)
            return await self._of(folder, names_files=False)
        except SettingsError as error:
            if self.names_files:
                raise
            log.warning("the settings for %s cannot be used: %s", folder, error)
            told = "the settings that count for this folder cannot be used; the server's log says why"
            raise SettingsError(told) from error

    def _log(self, folder: Path, rules: FolderRules) -> None:
        if rules in self._logged:
            return
        if len(self._logged) >= LOGGED_RULES:
            self._logged.clear()
        self._logged.add(rules)
        log.info("forbidden in %s, or asked about: %s", folder, "; ".join(rules.described()))

    async def _of(self, folder: Path, *, names_files: bool) -> FolderRules:
        rules = await self._of_project(folder, names_files)
        return rules | await self._of_project(self.start, names_files) if self.start in folder.parents else rules

    async def _of_project(self, folder: Path, names_files: bool) -> FolderRules:
        load = partial(load_folder_rules, folder, self.home, self.environment, names_files=names_files)
        untrusted = await asyncio.to_thread(load, is_trusted=False)
        trusted = await asyncio.to_thread(load, is_trusted=True)
        if trusted == untrusted:
            return untrusted
        if self.meet is not None:
            await self.meet(folder)
        return trusted if await asyncio.to_thread(self.trusts, folder) else untrusted
