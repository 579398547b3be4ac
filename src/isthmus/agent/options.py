"""Options of a coding agent, for all its sessions."""

import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import field
from pathlib import Path

from isthmus.agent.approval.policy import Policy
from isthmus.agent.approval.session_policy import SettingsRule
from isthmus.agent.session.added_folders import NO_FOLDERS, AddedFolders
from isthmus.agent.tool_search.loading import SearchOptions
from isthmus.files.path_rules import PathAccess
from isthmus.models.port.base import Effort
from isthmus.record import record
from isthmus.runtime.private_variables import EDITOR_ADDRESSES, OWN_TOKENS
from isthmus.tools.port.kept_indexes import KeptIndexes
from isthmus.tools.port.workspace import Workspace

COMPACTION_SHARE = 0.7


@record
class AgentOptions:
    """Options of a coding agent.

    ``output_folder`` receives tool outputs that are too long to show; ``environment`` is the environment of
    commands. ``max_model_turns`` is the maximum number of model messages for one prompt, None for no limit.
    ``stops_loops``: a model that repeats itself is stopped. ``settings_rule`` limits the AgentSettings of sessions.
    A conversation is compacted automatically if the next request would fill more than ``compaction_share`` of the
    model's context window. ``context_files`` are the names of the files that instruct the agent; empty for the
    usual ones. ``roots`` are the folders in which users of a server may work: files above them do not instruct
    their agents. ``tool_search`` controls loading the schemas of MCP servers' tools on demand. ``sandbox``
    describes the limits of shell commands. ``unused_settings`` are lines about ignored settings.
    ``appended_prompt`` is what the user who runs the agent adds to the system prompt of every request.
    ``is_in_terminal``: the user reads the answers in a terminal of ours. ``included_folders`` are further folders in
    which the agent works for the local user, who adds others to a session with ``may_include_folders``.
    """

    output_folder: Path
    environment: Mapping[str, str]
    policy: Policy = field(default_factory=Policy)
    max_model_turns: int | None = 250
    settings_rule: SettingsRule = field(default_factory=SettingsRule)
    compaction_share: float = COMPACTION_SHARE
    context_files: tuple[str, ...] = ()
    appended_prompt: str = ""
    roots: tuple[Path, ...] = ()
    tool_search: SearchOptions = field(default_factory=SearchOptions)
    sandbox: str = "none"
    unused_settings: tuple[str, ...] = ()
    stops_loops: bool = True
    effort: Effort | None = None
    """Amount of thinking; None leaves that to the models' providers."""
    fallback_models: tuple[str, ...] = ()
    """Names of the models that are asked while the session's own is overloaded, in order."""
    is_in_terminal: bool = False
    included_folders: tuple[Path, ...] = ()
    may_include_folders: bool = False
    tries_commands: bool = False
    """Whether commands about which a user would be asked are tried in a copy first."""
    file_indexes: KeptIndexes = field(default_factory=KeptIndexes)
    """The indexes of files that the workspaces of all sessions share."""

    def workspace_of(
        self, folder: Path, user: str, added: AddedFolders = NO_FOLDERS, access: PathAccess | None = None
    ) -> Workspace:
        """Return the workspace of a session in ``folder``, with the folders that were ``added`` to the session.

        ``access`` has the rules on its paths.
        """
        return Workspace(folder, self._further_folders(user, added), access or PathAccess(), self.file_indexes)

    def further_folders_of(self, folder: Path, user: str, added: AddedFolders) -> tuple[Path, ...]:
        """Return the folders besides ``folder`` in which a session works, without links. Most sessions have none."""
        further = self._further_folders(user, added)
        return Workspace(folder, further).others if further else ()

    def _further_folders(self, user: str, added: AddedFolders) -> tuple[Path, ...]:
        by_user = () if user else (*self.included_folders, *map(Path, added.by_user))
        return (*by_user, *self._allowed(added.by_client))

    def _allowed(self, folders: Collection[str]) -> Iterable[Path]:
        """Yield the folders that are still in the roots: a link may lead elsewhere since they were checked."""
        if not folders:
            return
        roots = [root.resolve() for root in self.roots]
        for folder in folders:
            place = Path(folder).resolve()
            if not roots or any(place.is_relative_to(root) for root in roots):
                yield place

    def environment_of(self, user: str) -> Mapping[str, str]:
        """Return the environment of a user's commands; only the local user's contains secrets."""
        return environment_for_remote_users(self.environment) if user else self.environment


AGENT_MARK = "ISTHMUS_AGENT"


def environment_for_commands(environment: Mapping[str, str], model_secrets: Set[str]) -> Mapping[str, str]:
    """Return the environment without the agent's own tokens, and without ``model_secrets``, the keys of its models.

    No command of a model needs them, nor the addresses of the user's editor; a user's commands may need the other
    variables. A mark tells programs that an agent runs the command instead of its user.
    """
    left_out = OWN_TOKENS | EDITOR_ADDRESSES | model_secrets
    kept = {name: value for name, value in environment.items() if name not in left_out}
    return {**kept, AGENT_MARK: "1"}


_SECRET_NAME = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|TOKEN|CREDENTIAL|API_?KEY|(^|_)(KEY|PASS|PAT|AUTH|COOKIE)(_|\d|$)"
    r"|^(SSH_AUTH_SOCK|GPG_AGENT_INFO)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"://[^\s/@:]*:[^\s/@]+@")
"""A URL that contains a password, such as that of a database or a proxy."""


def environment_for_remote_users(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment for other users' commands: without variables whose name or value indicates a secret."""
    return {
        name: value
        for name, value in environment.items()
        if not _SECRET_NAME.search(name) and not _SECRET_VALUE.search(value)
    }
