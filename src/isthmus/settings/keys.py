"""Table of the settings keys that are used, and of who may set each of them.

The reader takes values from the files that this table allows and from no others; docs/explanation/security.md
shows it. An untrusted folder can only forbid: it never chooses the model, what runs, what is asked, or who answers.
Deliberately not here: reading (:mod:`isthmus.settings.loading`), and keys that are only named
(:mod:`isthmus.settings.guards`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Setter(Enum):
    """Owners whose files may set a key, besides the user and the system."""

    USER = "only you"
    """No project's file."""
    TRUSTED = "a trusted folder"
    """The file of a project whose folder the user trusts."""
    ANYONE = "any folder"
    """Every project's file: the key can only forbid."""


class Merge(Enum):
    """Way in which the values of several files become one."""

    FIRST = "first"
    """The first file that has the key counts: system, project, user, system defaults."""
    ALL = "all"
    """Every file counts; each can only forbid more."""


@dataclass(frozen=True, slots=True)
class SettingKey:
    """A key, who may set it and what it does; ``limit`` says what a project's value cannot do even where it counts."""

    name: str
    setter: Setter
    effect: str
    merge: Merge = Merge.FIRST
    limit: str = ""

    @property
    def is_of_isthmus(self) -> bool:
        """Whether the key is ours, and not Gemini CLI's."""
        return self.name.startswith("isthmus.")


_PROVIDER_ONLY = "names a model of the provider in use; scripts and servers of this machine are refused"
_YOURS, _TRUSTED, _ANY = Setter.USER, Setter.TRUSTED, Setter.ANYONE

_KEYS = (
    SettingKey(
        "isthmus.model", _TRUSTED, "the model, in a form of `-m`; counts before `model.name`", limit=_PROVIDER_ONLY
    ),
    SettingKey("model.name", _TRUSTED, "the model", limit=_PROVIDER_ONLY),
    SettingKey("model.maxSessionTurns", _TRUSTED, "model requests for one prompt at the most; -1 means no limit"),
    SettingKey(
        "model.compressionThreshold",
        _TRUSTED,
        "the share of the model's context window (0 to 1) that a conversation takes before it is compacted",
    ),
    SettingKey("general.defaultApprovalMode", _YOURS, "`default`, `auto_edit`, `plan` or `yolo`"),
    SettingKey("tools.allowed", _YOURS, "tools and commands that run without asking"),
    SettingKey("tools.exclude", _ANY, "tools and commands that do not run", Merge.ALL),
    SettingKey("tools.core", _ANY, "the only tools and commands that run", Merge.ALL),
    SettingKey("tools.confirmationRequired", _ANY, "tools that are asked about each time", Merge.ALL),
    SettingKey("tools.sandbox", _YOURS, "the sandbox around shell commands ([sandbox.md](../how-to/sandbox.md))"),
    SettingKey("tools.sandboxAllowedPaths", _YOURS, "paths outside the folder that the sandbox opens"),
    SettingKey("tools.sandboxNetworkAccess", _YOURS, "network in the sandbox"),
    SettingKey("security.disableYoloMode", _ANY, "`true` refuses the approval mode `yolo`", Merge.ALL),
    SettingKey("security.disableAlwaysAllow", _ANY, "`true` takes the answers that hold for longer away", Merge.ALL),
    SettingKey("admin.secureModeEnabled", _ANY, "`true` does what the two keys above do", Merge.ALL),
    SettingKey("security.enablePermanentToolApproval", _YOURS, "the answer that holds for all sessions to come"),
    SettingKey("context.fileName", _TRUSTED, "the names of the files that instruct the agent"),
    SettingKey("ide.enabled", _TRUSTED, "whether an editor that has the folder open is used"),
    SettingKey("advanced.excludedEnvVars", _YOURS, "variables that are not taken from `~/.env`"),
    SettingKey("advanced.ignoreLocalEnv", _ANY, "`true` takes nothing from `.env` files of projects", Merge.ALL),
    SettingKey("mcpServers", _TRUSTED, "MCP servers ([mcp.md](../how-to/mcp.md)); a project's are shown, not started"),
    SettingKey("mcp.allowed", _ANY, "the only MCP servers that are used", Merge.ALL),
    SettingKey("mcp.excluded", _ANY, "MCP servers that are not used", Merge.ALL),
    SettingKey("isthmus.approval.readOnlyTools", _YOURS, "MCP servers whose tools that only read are not asked about"),
    SettingKey("isthmus.toolSearch", _TRUSTED, "when the schemas of MCP tools are loaded on demand"),
    SettingKey("isthmus.toolSearchShare", _TRUSTED, "the share of the context that they may take before"),
    SettingKey("isthmus.journal.maxSize", _YOURS, "the maximum size of the journal, for example `500MB`, or `none`"),
    SettingKey("isthmus.tokenStore", _YOURS, "where logins to MCP servers are kept: `file` or `keyring`"),
)

KEYS: Mapping[str, SettingKey] = MappingProxyType({key.name: key for key in _KEYS})
"""Every key that is used, by its name."""

OLD_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "tools.exclude": "excludeTools",
        "tools.core": "coreTools",
        "tools.allowed": "allowedTools",
    }
)
"""Names that Gemini CLI gave to keys before 0.3, and that still count."""
