"""Reads ``permissions`` in Claude Code's settings. Pure; :mod:`isthmus.settings.claude_files` reads the files.

A project can only forbid and ask, in any folder; its further folders count if it is trusted. A rule that forbids or
asks and is not understood is a problem: it is named at the start, ``yolo`` is refused, and nothing is allowed by the
other rules, because that rule might have forbidden it. A rule that allows and is not understood allows nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from isthmus.encoding.json_shapes import as_list, is_object
from isthmus.record import record
from isthmus.settings.claude_files import ClaudeFile, ClaudeFiles
from isthmus.settings.claude_keys import ClaudeKey
from isthmus.settings.rules.permissions import PathFolders, PermissionRule, PermissionRuleError, parse_rule
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.settings.settings_file import Owner
from isthmus.settings.sources import Sources
from isthmus.settings.trust.forms import folder_refusal

MAXIMUM_RULES = 200
"""Maximum number of rules that forbid or ask."""
MAXIMUM_ALLOWED = 1000
"""Maximum number of rules that allow."""
MAXIMUM_SHOWN_CHARACTERS = 200
"""Maximum length of a rule in a message; longer ones are cut."""
MODES: Mapping[str, str] = MappingProxyType({"default": "default", "acceptEdits": "auto_edit", "plan": "plan"})
"""Approval modes by their names in ``defaultMode``; the others are not taken over."""
_LISTS = {
    ClaudeKey.DENY: RuleDecision.DENY,
    ClaudeKey.ASK: RuleDecision.ASK,
    ClaudeKey.ALLOW: RuleDecision.ALLOW,
}


@record
class Permissions:
    """Permissions of all files: ``rules`` with those that forbid first.

    ``mode`` is the approval mode in which a session begins, or None; ``folders`` are further folders in which the agent
    works. ``yolo_refusal`` is why ``yolo`` is refused, or None. ``problems`` refuse it too, ``notices`` do not.
    """

    rules: tuple[PermissionRule, ...] = ()
    mode: str | None = None
    folders: tuple[str, ...] = ()
    yolo_refusal: str | None = None
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def read_permissions(files: Sources, claude: ClaudeFiles, project: Path, home: Path) -> Permissions:
    """Return the permissions that count for work in ``project``."""
    reader = _Reader(claude.folder, project, home, is_trusted=files.is_trusted)
    for where in claude.unreadable:
        reader.problems.append(f"{where} cannot be read, so its hooks do not run and its permissions do not count")
    for file in claude.files:
        reader.read(file)
    return reader.permissions()


class _Reader:
    """Collects the permissions of the files, of which earlier ones count first."""

    def __init__(self, folder: Path, project: Path, home: Path, *, is_trusted: bool) -> None:
        self._folder = folder
        self._project = project
        self._home = home
        self._is_trusted = is_trusted
        self._rules: dict[RuleDecision, list[PermissionRule]] = {decision: [] for decision in RuleDecision}
        self._mode: str | None = None
        self._folders: list[str] = []
        self._yolo_refusal: str | None = None
        self._only_machine_allows = False
        self.problems: list[str] = []
        self._notices: list[str] = []

    def read(self, file: ClaudeFile) -> None:
        """Read a file."""
        if file.owner is Owner.SYSTEM and file.get(ClaudeKey.MANAGED_RULES_ONLY) is True:
            self._only_machine_allows = True
        permissions = file.get(ClaudeKey.PERMISSIONS)
        if permissions is not None and not is_object(permissions):
            self.problems.append(f"permissions in {file.where} is not an object")
        for key, decision in _LISTS.items():
            self._read_list(file, key, decision)
        if file.get(ClaudeKey.BYPASS_OFF):
            where = f"{ClaudeKey.BYPASS_OFF.value} in {file.where}"
            self._yolo_refusal = self._yolo_refusal or f"{where} forbids it"
        self._read_folders(file)
        self._read_mode(file)

    def permissions(self) -> Permissions:
        """Return what the files say together."""
        forbidding = [*self._rules[RuleDecision.DENY], *self._rules[RuleDecision.ASK]]
        if len(forbidding) > MAXIMUM_RULES:
            self.problems.append(f"{len(forbidding)} rules of permissions forbid or ask; {MAXIMUM_RULES} are used")
        allowing = self._rules[RuleDecision.ALLOW][:MAXIMUM_ALLOWED] if not self.problems else []
        return Permissions(
            tuple(dict.fromkeys((*forbidding[:MAXIMUM_RULES], *allowing))),
            self._mode,
            tuple(dict.fromkeys(self._folders)),
            self._yolo_refusal,
            tuple(dict.fromkeys(self.problems)),
            tuple(dict.fromkeys(self._notices)),
        )

    def _read_list(self, file: ClaudeFile, key: ClaudeKey, decision: RuleDecision) -> None:
        value, where = file.get(key), f"{key.value} in {file.where}"
        is_allowing = decision is RuleDecision.ALLOW
        problems = self._notices if is_allowing else self.problems
        if value is None or value == []:
            return
        if is_allowing and (file.owner is Owner.PROJECT or (self._only_machine_allows and file.owner is Owner.USER)):
            whose = "the machine's" if file.owner is Owner.USER else "your own"
            self._notices.append(f"{where} allows nothing: only {whose} settings may allow")
            return
        if not isinstance(value, list):
            problems.append(f"{where} is not a list")
            return
        for text in as_list(cast("object", value)):
            try:
                if not isinstance(text, str):
                    raise PermissionRuleError("it is not text")
                self._rules[decision].append(parse_rule(text, decision, where, self._folders_of(file, decision)))
            except PermissionRuleError as error:
                problems.append(f"{text!r:.{MAXIMUM_SHOWN_CHARACTERS}} in {where}: {error}")

    def _folders_of(self, file: ClaudeFile, decision: RuleDecision) -> PathFolders:
        """Return the folders of paths; where a rule forbids, one with a slash of the user means the project, too."""
        own = self._project if file.owner is Owner.PROJECT else file.path.parent
        is_both = decision is not RuleDecision.ALLOW and own != self._project
        return PathFolders(self._project, self._home, (own, self._project) if is_both else (own,))

    def _read_folders(self, file: ClaudeFile) -> None:
        value, where = file.get(ClaudeKey.FOLDERS), f"{ClaudeKey.FOLDERS.value} in {file.where}"
        if not value:
            return
        if file.owner is Owner.PROJECT and not self._is_trusted:
            self._notices.append(f"{where} is not used, because the folder is not trusted")
        elif not (names := as_list(value)) or not all(isinstance(name, str) and "\0" not in name for name in names):
            self._notices.append(f"{where} is not used: expected a list of folders")
        else:
            self._folders += map(str, names if file.owner is not Owner.PROJECT else self._allowed(where, names))

    def _allowed(self, where: str, names: Sequence[Any]) -> Iterator[str]:
        """Yield the folders that a project may name."""
        for name in map(str, names):
            if (refusal := folder_refusal(self._project, self._home, name)) is None:
                yield name
            else:
                self._notices.append(
                    f"{where} names {name!r:.{MAXIMUM_SHOWN_CHARACTERS}}, which is not used: {refusal}"
                )

    def _read_mode(self, file: ClaudeFile) -> None:
        value, where = file.get(ClaudeKey.MODE), f"{ClaudeKey.MODE.value} in {file.where}"
        if value is None or (file.owner is Owner.PROJECT and value == "default"):
            return
        if file.owner is Owner.PROJECT:
            self._notices.append(f"{where} is not used: only your own settings choose the approval mode")
        elif not isinstance(value, str) or value not in MODES:
            self._notices.append(f"{where} is not used: {value!r:.100} has no approval mode of its own here")
        else:
            self._mode = self._mode or MODES[value]
