"""Table of the settings keys that are used, and of who may set each of them.

:mod:`isthmus.settings.loading` reads values only from the files that this table allows; docs/explanation/security.md
shows it. An untrusted folder can only forbid: it cannot choose the model, what runs, what is asked, or who answers.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from isthmus.record import record


class Setter(Enum):
    """Files that may set a key."""

    USER = "only you"
    """Files of the user and the system; no project's."""
    TRUSTED = "a trusted folder"
    """Every file, but a project's only if the user trusts its folder."""
    ANYONE = "any folder"
    """Every file, because the key can only forbid."""


class Merge(Enum):
    """Rule by which the values of several files become one."""

    FIRST = "first"
    """The first file that has the key counts: system, project, user, system defaults."""
    ALL = "all"
    """Every file counts, and each can only forbid more."""


@record
class SettingKey:
    """A key, who may set it and what it does; ``limit`` restricts the value of a project that may set it."""

    name: str
    setter: Setter
    effect: str
    merge: Merge = Merge.FIRST
    limit: str = ""

    @property
    def is_of_isthmus(self) -> bool:
        """Whether the key is our own, not Gemini CLI's."""
        return self.name.startswith("isthmus.")


_PROVIDER_ONLY = "names a model of the provider in use; scripts and servers of this machine are refused"
_YOURS, _TRUSTED, _ANY = Setter.USER, Setter.TRUSTED, Setter.ANYONE

_KEYS = (
    SettingKey(
        "isthmus.model", _TRUSTED, "the model, in a form of `-m`; counts before `model.name`", limit=_PROVIDER_ONLY
    ),
    SettingKey(
        "isthmus.fallbackModels",
        _YOURS,
        "a list of models, in the forms of `-m`, that are asked while the model is overloaded or its quota is used up",
    ),
    SettingKey(
        "isthmus.thinkingEffort",
        _YOURS,
        "`low`, `medium` or `high`: how much the model thinks; its provider decides without the key",
    ),
    SettingKey("model.name", _TRUSTED, "the model", limit=_PROVIDER_ONLY),
    SettingKey(
        "model.maxSessionTurns",
        _TRUSTED,
        "maximum number of model requests for one prompt; 250 without the key, no limit if it is -1",
    ),
    SettingKey(
        "model.disableLoopDetection", _YOURS, "`true` lets a model that repeats itself go on up to the limit above"
    ),
    SettingKey(
        "model.compressionThreshold",
        _TRUSTED,
        "the share of the model's context window (0 to 1) at which a conversation is compacted",
    ),
    SettingKey("general.defaultApprovalMode", _YOURS, "`default`, `auto_edit`, `plan` or `yolo`"),
    SettingKey("general.vimMode", _YOURS, "`true` edits the prompt of the terminal with the keys of vi"),
    SettingKey("tools.allowed", _YOURS, "tools and commands that run without asking"),
    SettingKey("tools.exclude", _ANY, "tools and commands that do not run", Merge.ALL),
    SettingKey("tools.core", _ANY, "the only tools and commands that run", Merge.ALL),
    SettingKey("tools.confirmationRequired", _ANY, "tools that are asked about each time", Merge.ALL),
    SettingKey("policyPaths", _YOURS, "policy files, or their folders, in place of `~/.gemini/policies`"),
    SettingKey(
        "adminPolicyPaths", _YOURS, "policy files, or their folders, where the machine's folder of policies has none"
    ),
    SettingKey(
        "hooks", _TRUSTED, "programs that run around prompts, tools and model requests, and may refuse them", Merge.ALL
    ),
    SettingKey("tools.sandbox", _YOURS, "the sandbox around shell commands ([sandbox.md](../how-to/sandbox.md))"),
    SettingKey("tools.sandboxAllowedPaths", _YOURS, "paths outside the folder that the sandbox opens"),
    SettingKey("tools.sandboxNetworkAccess", _YOURS, "network in the sandbox"),
    SettingKey("security.disableYoloMode", _ANY, "`true` refuses the approval mode `yolo`", Merge.ALL),
    SettingKey(
        "security.disableAlwaysAllow", _ANY, "`true` removes the answers that hold for more than one call", Merge.ALL
    ),
    SettingKey("admin.secureModeEnabled", _ANY, "`true` has the effect of the two keys above", Merge.ALL),
    SettingKey(
        "security.enablePermanentToolApproval", _YOURS, "`true` offers an answer that holds for all future sessions"
    ),
    SettingKey("skills.enabled", _ANY, "`false` offers the agent no skills", Merge.ALL),
    SettingKey("admin.skills.enabled", _ANY, "the same", Merge.ALL),
    SettingKey("skills.disabled", _ANY, "the names of skills that the agent is not offered", Merge.ALL),
    SettingKey("experimental.enableAgents", _ANY, "`false` offers the agent no subagents", Merge.ALL),
    SettingKey("agents.overrides", _ANY, '`{"NAME": {"enabled": false}}` takes a subagent away', Merge.ALL),
    SettingKey("admin.extensions.enabled", _YOURS, "`false` uses no extensions of Gemini CLI", Merge.ALL),
    SettingKey(
        "security.blockGitExtensions", _YOURS, "`true` uses no extensions that were installed from git", Merge.ALL
    ),
    SettingKey(
        "security.allowedExtensions",
        _YOURS,
        "regular expressions: an extension is used if one matches the source that it was installed from",
        Merge.ALL,
    ),
    SettingKey(
        "security.environmentVariableRedaction.allowed",
        _YOURS,
        "variables that MCP servers of your own settings get although their names look like those of secrets",
    ),
    SettingKey("security.environmentVariableRedaction.blocked", _ANY, "variables that no MCP server gets", Merge.ALL),
    SettingKey("context.fileName", _TRUSTED, "the names of the files that instruct the agent"),
    SettingKey("context.includeDirectories", _TRUSTED, "further folders in which the agent works", Merge.ALL),
    SettingKey("ide.enabled", _TRUSTED, "`false` does not use the editor that has the folder open"),
    SettingKey("advanced.excludedEnvVars", _YOURS, "variables that are not read from `~/.env`"),
    SettingKey("advanced.ignoreLocalEnv", _ANY, "`true` reads nothing from `.env` files of projects", Merge.ALL),
    SettingKey(
        "mcpServers",
        _TRUSTED,
        "MCP servers ([mcp.md](../how-to/mcp.md)); those of an untrusted folder are shown, not started",
    ),
    SettingKey("mcp.allowed", _ANY, "the only MCP servers that are used", Merge.ALL),
    SettingKey("mcp.excluded", _ANY, "MCP servers that are not used", Merge.ALL),
    SettingKey("isthmus.mcp.allowed", _ANY, "the only MCP servers that are used, by command or URL", Merge.ALL),
    SettingKey("isthmus.mcp.denied", _ANY, "MCP servers that are not used, by command or URL", Merge.ALL),
    SettingKey("admin.mcp.enabled", _ANY, "`false` uses no MCP servers", Merge.ALL),
    SettingKey("admin.mcp.config", _YOURS, "the only MCP servers that are used, with their URLs"),
    SettingKey(
        "isthmus.approval.readOnlyTools", _YOURS, "MCP servers whose tools run without asking if they only read"
    ),
    SettingKey(
        "isthmus.toolSearch", _TRUSTED, "when schemas of MCP tools are loaded on demand: `auto`, `always` or `never`"
    ),
    SettingKey("isthmus.toolSearchShare", _TRUSTED, "the share of the context from which `auto` loads them on demand"),
    SettingKey("isthmus.journal.maxSize", _YOURS, "the maximum size of the journal, for example `500MB`, or `none`"),
    SettingKey(
        "isthmus.terminal.attention",
        _YOURS,
        "how the terminal calls you: `all` (bell, window title, notifications), `bell` or `none`",
    ),
    SettingKey("isthmus.terminal.theme", _YOURS, "the colours of the terminal: `auto`, `light`, `dark` or `none`"),
    SettingKey(
        "isthmus.parts",
        _YOURS,
        "the names of parts that installed packages add to the agent ([parts.md](../how-to/parts.md))",
    ),
    SettingKey("isthmus.tokenStore", _YOURS, "where logins to MCP servers are kept: `file` or `keyring`"),
)

KEYS: Mapping[str, SettingKey] = MappingProxyType({key.name: key for key in _KEYS})
"""Table of the keys that are used, by name."""

OLD_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "tools.exclude": "excludeTools",
        "tools.core": "coreTools",
        "tools.allowed": "allowedTools",
    }
)
"""Names of keys before Gemini CLI 0.3, which still count."""
