"""Restrictions that the settings put on sessions in a folder, which may differ from the start folder.

A project's restrictions count in a trusted folder; its editor is asked about trust only if that makes a difference.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path

from isthmus.mcp_host.config.folder_trust import FolderTrust
from isthmus.record import record
from isthmus.runtime.brief_work import briefly
from isthmus.settings import FolderRules, SettingsError, load_folder_rules

log = logging.getLogger(__name__)
LOGGED_RULES = 256
"""Maximum number of rules remembered as logged; beyond it they are forgotten and logged again."""


@record
class RulesOfFolders:
    """Reader of the rules of folders, which reads the settings files for each request.

    The rules of ``start``, the folder that the program was started in, also apply to sessions in folders below it.
    ``connect_editor`` connects to the editor that has a folder open, so that ``trusts`` can ask it.
    ``names_files``: texts contain the paths of settings files; otherwise, for clients of a server, only the log does.
    """

    start: Path
    home: Path
    environment: Mapping[str, str]
    trusts: FolderTrust
    connect_editor: Callable[[Path], Awaitable[None]] | None = None
    names_files: bool = True
    _logged: set[FolderRules] = field(default_factory=set[FolderRules], init=False, compare=False)

    async def of(self, folder: Path) -> FolderRules:
        """Return the rules of a folder.

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
            if self.names_files or str(error).startswith(f"{folder}{os.sep}"):
                raise  # A client that works in a folder may know of the files in it.
            log.warning("the settings for %s cannot be used: %s", folder, error)
            message = "the settings that count for this folder cannot be used; the server's log says why"
            raise SettingsError(message) from error

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
        rules = await briefly(load)
        if rules.trusted == rules.untrusted:
            return rules.untrusted
        if self.connect_editor is not None:
            await self.connect_editor(folder)
        return rules.trusted if await briefly(self.trusts, folder) else rules.untrusted
