"""Table of the settings keys that are used: how each is read, who may set it, and what it does.

A row is all that is said of a key, and nothing else is looked up in a settings file. From a row follow the value of its
field (:mod:`isthmus.settings.settings`) and the files that count (:mod:`isthmus.settings.sources`). So do the question
of trust (:mod:`isthmus.settings.trust.forms`), what ``/settings`` shows, and what is meant by a misspelt key.
``scripts/settings_tables.py`` writes both tables of the documents from them. An untrusted folder can only forbid: it
cannot choose the model, what runs, what is asked, or who answers.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from isthmus.settings.rules.rules import ReadOnlyTools
from isthmus.settings.setting_key import Setter, SettingKey
from isthmus.settings.trust.items import ItemKind
from isthmus.settings.values import (
    Merge,
    apart,
    choice,
    dollars,
    elsewhere,
    every,
    file_names,
    first,
    first_or,
    flag,
    if_on,
    joined,
    maximum,
    model_settings,
    opposite,
    read_only_tools,
    sandbox,
    share,
    size,
    strings,
    strings_or,
    switched_off,
    text,
    unless_off,
    wait,
    where_on,
)

EXCLUDED_VARIABLES = (
    "DEBUG",
    "DEBUG_MODE",
    "GEMINI_CLI_IDE_SERVER_STDIO_COMMAND",
    "GEMINI_CLI_IDE_SERVER_STDIO_ARGS",
)
"""Variables that are not read from ``~/.env``, unless ``advanced.excludedEnvVars`` lists others, as in Gemini CLI."""


_PROVIDER_ONLY = "names a model of the provider in use; scripts and servers of this machine are refused"
_YOURS, _TRUSTED, _ANY = Setter.USER, Setter.TRUSTED, Setter.ANYONE

MODEL = SettingKey(
    "isthmus.model",
    first(text),
    _TRUSTED,
    "the model, in a form of `-m`; counts before `model.name`",
    is_shown=True,
    limit=_PROVIDER_ONLY,
)
FALLBACK_MODELS = SettingKey(
    "isthmus.fallbackModels",
    first_or((), strings),
    _YOURS,
    "a list of models, in the forms of `-m`, that are asked while the model is overloaded or its quota is used up",
    is_shown=True,
)
THINKING_EFFORT = SettingKey(
    "isthmus.thinkingEffort",
    first(choice("minimal", "low", "medium", "high", "xhigh", "max")),
    _YOURS,
    "`minimal`, `low`, `medium`, `high`, `xhigh` or `max`: how much the model thinks; a model without this level gets "
    "the next lower one, and the provider decides without the key ([models.md](../reference/models.md#effort))",
    is_shown=True,
)
MODELS = SettingKey(
    "isthmus.models",
    first_or((), model_settings),
    _YOURS,
    "facts about models by their names, in place of the table: `contextWindow` and `maxOutputTokens` in tokens, "
    "`prices` with `input`, `output`, `cacheRead` and `cacheWrite` in US dollars for a million tokens, `media` a list "
    "of `image`, `pdf`, `audio`, `video` that it reads "
    "([models.md](../reference/models.md#your-own-facts))",
    is_shown=True,
)
PATIENCE = SettingKey(
    "isthmus.patience",
    first(wait),
    _YOURS,
    "a time such as `10m`: how long a request waits for a network that is away, or a server that is busy, as with"
    " `--patience`; without the key 10 minutes, and 20 where nobody watches",
    is_shown=True,
)
BUDGET_TURN = SettingKey(
    "isthmus.budget.turn",
    first(dollars),
    _YOURS,
    'US dollars that models may cost in one turn, such as `"2.50"`, with its subagents and summaries; a turn that'
    " reaches them ends after its calls ([costs.md](../how-to/costs.md#budgets))",
    is_shown=True,
)
BUDGET_SESSION = SettingKey(
    "isthmus.budget.session", first(dollars), _YOURS, "the same for all turns of a session", is_shown=True
)
BUDGET_DAY = SettingKey(
    "isthmus.budget.day",
    first(dollars),
    _YOURS,
    "the same for all of your sessions on one day, by UTC; users of a server have limits of their own"
    " (`--user-max-usd-a-day`)",
    is_shown=True,
)
MODEL_NAME = SettingKey("model.name", first(text), _TRUSTED, "the model", is_shown=True, limit=_PROVIDER_ONLY)
MAX_SESSION_TURNS = SettingKey(
    "model.maxSessionTurns",
    first(maximum),
    _TRUSTED,
    "maximum number of model requests for one prompt; 250 without the key, no limit if it is -1",
)
DISABLE_LOOP_DETECTION = SettingKey(
    "model.disableLoopDetection",
    first_or(True, opposite),
    _YOURS,
    "`true` lets a model that repeats itself go on up to the limit above",
)
COMPRESSION_THRESHOLD = SettingKey(
    "model.compressionThreshold",
    first(share),
    _TRUSTED,
    "the share of the model's context window (0 to 1) at which a conversation is compacted",
)
DEFAULT_APPROVAL_MODE = SettingKey(
    "general.defaultApprovalMode", first(text), _YOURS, "`default`, `auto_edit`, `plan` or `yolo`", is_shown=True
)
VIM_MODE = SettingKey(
    "general.vimMode", first_or(False, flag), _YOURS, "`true` edits the prompt of the terminal with the keys of vi"
)
TOOLS_ALLOWED = SettingKey(
    "tools.allowed",
    first_or((), strings),
    _YOURS,
    "tools and commands that run without asking",
    is_shown=True,
    former_name="allowedTools",
)
TOOLS_EXCLUDE = SettingKey(
    "tools.exclude",
    every(strings),
    _ANY,
    "tools and commands that do not run",
    is_shown=True,
    former_name="excludeTools",
)
TOOLS_CORE = SettingKey(
    "tools.core", every(strings), _ANY, "the only tools and commands that run", is_shown=True, former_name="coreTools"
)
TOOLS_CONFIRMATION_REQUIRED = SettingKey(
    "tools.confirmationRequired", every(strings), _ANY, "tools that are asked about each time", is_shown=True
)
POLICY_PATHS = SettingKey(
    "policyPaths",
    first_or((), strings),
    _YOURS,
    "policy files, or their folders, in place of `~/.gemini/policies`",
    is_shown=True,
)
ADMIN_POLICY_PATHS = SettingKey(
    "adminPolicyPaths",
    first_or((), strings),
    _YOURS,
    "policy files, or their folders, where the machine's folder of policies has none",
    is_shown=True,
)
HOOKS = SettingKey(
    "hooks",
    elsewhere(Merge.ALL),
    _TRUSTED,
    "programs that run around prompts, tools and model requests, and may refuse them",
    item=ItemKind.HOOK,
)
HOOKS_ENABLED = SettingKey(
    "hooksConfig.enabled",
    apart(True, flag),
    _ANY,
    "`false` runs no hooks of Gemini CLI's files",
)
HOOKS_DISABLED = SettingKey(
    "hooksConfig.disabled",
    apart((), strings),
    _ANY,
    "the names or commands of hooks of Gemini CLI's files that do not run",
)
SANDBOX = SettingKey(
    "tools.sandbox",
    sandbox,
    _YOURS,
    "the sandbox around shell commands ([sandbox.md](../how-to/sandbox.md))",
    is_shown=True,
)
SANDBOX_ALLOWED_PATHS = SettingKey(
    "tools.sandboxAllowedPaths", sandbox, _YOURS, "paths outside the folder that the sandbox opens", is_shown=True
)
SANDBOX_NETWORK_ACCESS = SettingKey("tools.sandboxNetworkAccess", sandbox, _YOURS, "network in the sandbox")
DISABLE_YOLO_MODE = SettingKey("security.disableYoloMode", where_on, _ANY, "`true` refuses the approval mode `yolo`")
DISABLE_ALWAYS_ALLOW = SettingKey(
    "security.disableAlwaysAllow", where_on, _ANY, "`true` removes the answers that hold for more than one call"
)
SECURE_MODE = SettingKey("admin.secureModeEnabled", where_on, _ANY, "`true` has the effect of the two keys above")
PERMANENT_TOOL_APPROVAL = SettingKey(
    "security.enablePermanentToolApproval",
    first_or(False, flag),
    _YOURS,
    "`true` offers an answer that holds for all future sessions",
)
SKILLS_ENABLED = SettingKey("skills.enabled", unless_off, _ANY, "`false` offers the agent no skills")
ADMIN_SKILLS_ENABLED = SettingKey("admin.skills.enabled", unless_off, _ANY, "the same")
SKILLS_DISABLED = SettingKey(
    "skills.disabled", joined(strings), _ANY, "the names of skills that the agent is not offered", is_shown=True
)
ENABLE_AGENTS = SettingKey("experimental.enableAgents", unless_off, _ANY, "`false` offers the agent no subagents")
AGENTS_OVERRIDES = SettingKey(
    "agents.overrides", joined(switched_off), _ANY, '`{"NAME": {"enabled": false}}` takes a subagent away'
)
EXTENSIONS_ENABLED = SettingKey(
    "admin.extensions.enabled", unless_off, _YOURS, "`false` uses no extensions of Gemini CLI"
)
BLOCK_GIT_EXTENSIONS = SettingKey(
    "security.blockGitExtensions", if_on, _YOURS, "`true` uses no extensions that were installed from git"
)
ALLOWED_EXTENSIONS = SettingKey(
    "security.allowedExtensions",
    every(strings),
    _YOURS,
    "regular expressions: an extension is used if one matches the source that it was installed from",
)
VARIABLES_ALLOWED = SettingKey(
    "security.environmentVariableRedaction.allowed",
    elsewhere(Merge.FIRST),
    _YOURS,
    "variables that MCP servers of your own settings get although their names look like those of secrets",
)
VARIABLES_BLOCKED = SettingKey(
    "security.environmentVariableRedaction.blocked", elsewhere(Merge.ALL), _ANY, "variables that no MCP server gets"
)
CONTEXT_FILE_NAME = SettingKey(
    "context.fileName",
    first_or((), file_names),
    _TRUSTED,
    "the names of the files that instruct the agent",
    is_shown=True,
)
INCLUDE_DIRECTORIES = SettingKey(
    "context.includeDirectories",
    every(strings),
    _TRUSTED,
    "further folders in which the agent works",
    is_shown=True,
    item=ItemKind.FOLDER,
)
IDE_ENABLED = SettingKey(
    "ide.enabled", first(flag), _TRUSTED, "`false` does not use the editor that has the folder open"
)
EXCLUDED_ENV_VARS = SettingKey(
    "advanced.excludedEnvVars",
    first_or(EXCLUDED_VARIABLES, strings_or(EXCLUDED_VARIABLES)),
    _YOURS,
    "variables that are not read from `~/.env`",
    is_shown=True,
)
IGNORE_LOCAL_ENV = SettingKey(
    "advanced.ignoreLocalEnv", if_on, _ANY, "`true` reads nothing from `.env` files of projects"
)
MCP_SERVERS = SettingKey(
    "mcpServers",
    elsewhere(Merge.MEMBERS),
    _TRUSTED,
    "MCP servers ([mcp.md](../how-to/mcp.md)); those of an untrusted folder are shown, not started",
    item=ItemKind.SERVER,
)
MCP_ALLOWED = SettingKey("mcp.allowed", elsewhere(Merge.ALL), _ANY, "the only MCP servers that are used", is_shown=True)
MCP_EXCLUDED = SettingKey("mcp.excluded", elsewhere(Merge.ALL), _ANY, "MCP servers that are not used", is_shown=True)
MCP_ALLOWED_BY_URL = SettingKey(
    "isthmus.mcp.allowed", elsewhere(Merge.ALL), _ANY, "the only MCP servers that are used, by command or URL"
)
MCP_DENIED_BY_URL = SettingKey(
    "isthmus.mcp.denied", elsewhere(Merge.ALL), _ANY, "MCP servers that are not used, by command or URL"
)
MCP_ENABLED = SettingKey("admin.mcp.enabled", elsewhere(Merge.ALL), _ANY, "`false` uses no MCP servers")
MCP_CONFIG = SettingKey(
    "admin.mcp.config", elsewhere(Merge.FIRST), _YOURS, "the only MCP servers that are used, with their URLs"
)
READ_ONLY_TOOLS = SettingKey(
    "isthmus.approval.readOnlyTools",
    first_or(ReadOnlyTools(), read_only_tools),
    _YOURS,
    "MCP servers whose tools run without asking if they only read",
    is_shown=True,
)
ALLOW_BY_EFFECT = SettingKey(
    "isthmus.approval.allowByEffect",
    first_or(False, flag),
    _YOURS,
    "`true` tries commands in a copy of the folder first, and asks only if they change more than build outputs there",
    is_shown=True,
)
TOOL_SEARCH = SettingKey(
    "isthmus.toolSearch",
    first(choice("auto", "always", "never")),
    _TRUSTED,
    "when schemas of MCP tools are loaded on demand: `auto`, `always` or `never`",
    is_shown=True,
)
TOOL_SEARCH_SHARE = SettingKey(
    "isthmus.toolSearchShare", first(share), _TRUSTED, "the share of the context from which `auto` loads them on demand"
)
JOURNAL_MAX_SIZE = SettingKey(
    "isthmus.journal.maxSize",
    first(size),
    _YOURS,
    "the maximum size of the journal, for example `500MB`, or `none`",
    is_shown=True,
)
ATTENTION = SettingKey(
    "isthmus.terminal.attention",
    first(choice("all", "bell", "none")),
    _YOURS,
    "how the terminal calls you: `all` (bell, window title, notifications), `bell` or `none`",
    is_shown=True,
)
THEME = SettingKey(
    "isthmus.terminal.theme",
    first(choice("auto", "light", "dark", "none")),
    _YOURS,
    "the colours of the terminal: `auto`, `light`, `dark` or `none`",
    is_shown=True,
)
PARTS = SettingKey(
    "isthmus.parts",
    first_or((), strings),
    _YOURS,
    "the names of parts that installed packages add to the agent ([parts.md](../how-to/parts.md))",
    is_shown=True,
)
LANGUAGE_SERVERS = SettingKey(
    "isthmus.languageServers",
    first(choice("installed", "project", "none")),
    _YOURS,
    "the language servers that are asked for new errors after edits, in trusted folders: `installed` ones (without the"
    " key), also those of the `project`, or `none`",
    is_shown=True,
)
TOKEN_STORE = SettingKey(
    "isthmus.tokenStore",
    first(choice("file", "keyring")),
    _YOURS,
    "where logins to MCP servers are kept: `file` or `keyring`",
    is_shown=True,
)

_rows = cast("list[SettingKey[object]]", [row for row in list(globals().values()) if isinstance(row, SettingKey)])
KEYS: Mapping[str, SettingKey[object]] = MappingProxyType({row.name: row for row in _rows})
"""Table of the keys that are used, by name: the rows above, in their order."""
FORMER_NAMES: Mapping[str, str] = MappingProxyType({row.name: row.former_name for row in _rows if row.former_name})
"""Names of keys before Gemini CLI 0.3, which still count, by the present name."""
