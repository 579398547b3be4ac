"""Hooks of Gemini CLI and Claude Code, read from their settings: programs that run at events.

Pure; :mod:`isthmus.settings.claude_files` reads Claude Code's files, and :mod:`isthmus.agent.hooks` runs the hooks.
Hooks of a project count only in a trusted folder. A hook that could refuse something and is not run here is a problem,
which refuses ``yolo``; one that could not is a notice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.record import record
from isthmus.settings.claude_files import ClaudeFiles
from isthmus.settings.claude_keys import ClaudeKey
from isthmus.settings.extensions import Extension
from isthmus.settings.keys import HOOKS, HOOKS_DISABLED, HOOKS_ENABLED
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from isthmus.settings.settings_file import Owner
from isthmus.settings.sources import OF_OWNER, Sources
from isthmus.text.linear_pattern import LinearPattern, UnsupportedPatternError

MAXIMUM_HOOKS = 100
"""Maximum number of hooks that are used."""
MAXIMUM_SECONDS = 3600.0
"""Maximum time in seconds that a hook may be given."""
MAXIMUM_NAME_CHARACTERS = 100
"""Maximum length of the name of an event or a type in a message; longer ones are cut."""


@record
class Hooks:
    """Hooks that run; ``problems`` refuse ``yolo``, ``notices`` do not."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@record
class _Form:
    """Particulars of the hooks of a program. Events that are not served either refuse nothing or might."""

    dialect: HookDialect
    served: Mapping[str, HookEvent]
    harmless: frozenset[str]
    default_seconds: float
    timeout_unit_seconds: float


_GEMINI = _Form(
    HookDialect.GEMINI,
    {
        "BeforeTool": HookEvent.BEFORE_TOOL,
        "AfterTool": HookEvent.AFTER_TOOL,
        "BeforeAgent": HookEvent.PROMPT,
        "AfterAgent": HookEvent.END,
        "SessionStart": HookEvent.SESSION_START,
        "BeforeModel": HookEvent.BEFORE_MODEL,
        "BeforeToolSelection": HookEvent.TOOL_SELECTION,
        "AfterModel": HookEvent.AFTER_MODEL,
    },
    frozenset({"SessionEnd", "Notification", "PreCompress"}),
    60.0,
    0.001,
)
_CLAUDE = _Form(
    HookDialect.CLAUDE,
    {
        "PreToolUse": HookEvent.BEFORE_TOOL,
        "PostToolUse": HookEvent.AFTER_TOOL,
        "PostToolUseFailure": HookEvent.AFTER_FAILED_TOOL,
        "UserPromptSubmit": HookEvent.PROMPT,
        "PermissionRequest": HookEvent.PERMISSION,
        "SessionStart": HookEvent.SESSION_START,
        "Stop": HookEvent.END,
        "SubagentStart": HookEvent.SUBAGENT_START,
        "SubagentStop": HookEvent.SUBAGENT_END,
    },
    frozenset(
        {
            "CwdChanged",
            "FileChanged",
            "InstructionsLoaded",
            "Notification",
            "PostCompact",
            "PreCompact",
            "SessionEnd",
            "Setup",
            "StopFailure",
            "WorktreeRemove",
        }
    ),
    600.0,
    1.0,
)


def read_hooks(files: Sources, claude: ClaudeFiles, extensions: Sequence[Extension] = ()) -> Hooks:
    """Return the hooks of Gemini CLI's settings files, its extensions and Claude Code's files."""
    found = [*_of_gemini(files, extensions), *_of_claude(claude, is_trusted=files.is_trusted)]
    hooks = tuple(dict.fromkeys(hook for each in found for hook in each.hooks))
    problems = [problem for each in found for problem in each.problems]
    if len(hooks) > MAXIMUM_HOOKS:
        problems.append(f"there are {len(hooks)} hooks, of which {MAXIMUM_HOOKS} run")
    notices = [notice for each in found for notice in each.notices]
    return Hooks(hooks[:MAXIMUM_HOOKS], tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(notices)))


def _of_gemini(files: Sources, extensions: Sequence[Extension]) -> Iterator[Hooks]:
    """Yield the hooks of each of Gemini CLI's files and extensions. A project switches off its own hooks alone."""
    is_on, off = files.read(HOOKS_ENABLED), set(files.read(HOOKS_DISABLED))
    for file in files.of(HOOKS):
        is_project = file.owner is Owner.PROJECT
        if not is_on or (is_project and file.get(HOOKS_ENABLED.name) is False):
            continue
        hooks = {name: value for name, value in as_object(file.get(HOOKS.name)).items() if name not in _CONFIG_NAMES}
        own_off = {str(name) for name in as_list(file.get(HOOKS_DISABLED.name))} if is_project else set[str]()
        yield _parse(_GEMINI, hooks, files.where(file), off | own_off, is_project=is_project)
    for extension in extensions if is_on else ():
        where = f"the extension {extension.name}" if files.names_files else OF_OWNER
        yield _parse(_GEMINI, extension.hooks, where, off)


_CONFIG_NAMES = ("enabled", "disabled", "notifications")
"""Names beside the events in older settings files, which are not events."""


def _of_claude(claude: ClaudeFiles, *, is_trusted: bool) -> Iterator[Hooks]:
    """Yield the hooks of each of Claude Code's files; those of the machine cannot be switched off."""
    yield Hooks(notices=claude.notices)
    is_off = False
    for file in claude.files:
        if file.owner is Owner.PROJECT and not is_trusted:
            continue
        is_file_off = file.get(ClaudeKey.ALL_HOOKS_OFF) is True
        is_off = is_off or (is_file_off and file.owner is Owner.USER)
        if file.owner is Owner.SYSTEM or not (is_off or is_file_off):
            is_project = file.owner is Owner.PROJECT
            yield _parse(_CLAUDE, as_object(file.get(ClaudeKey.HOOKS)), file.where, set(), is_project=is_project)


def _parse(
    form: _Form, events: Mapping[str, object], where: str, names_off: Iterable[str], *, is_project: bool = False
) -> Hooks:
    hooks: list[Hook] = []
    problems: list[str] = []
    notices: list[str] = []
    for name, groups in events.items():
        shown = f"hooks.{name[:MAXIMUM_NAME_CHARACTERS]} in {where}"
        handlers = [
            (group, as_object(raw)) for group in map(as_object, as_list(groups)) for raw in as_list(group.get("hooks"))
        ]
        handlers = [
            (group, raw) for group, raw in handlers if not {raw.get("name"), raw.get("command")} & set(names_off)
        ]
        if not handlers and not (groups and not isinstance(groups, list)):
            continue
        if name in form.harmless:
            notices.append(f"{shown} do not run: Isthmus has no such event")
        elif name not in form.served:
            problems.append(shown)
        else:
            for group, raw in handlers:
                try:
                    hooks.append(replace(_hook(form, name, group, raw, shown), is_project=is_project))
                except _NotServedError as error:
                    if raw.get("async") is True:
                        notices.append(f"{shown}: {error}")
                    else:
                        problems.append(f"{shown}: {error}")
    return Hooks(tuple(hooks), tuple(problems), tuple(notices))


class _NotServedError(ValueError):
    """A hook is not run; the text says why."""


def _hook(form: _Form, name: str, group: Mapping[str, object], raw: Mapping[str, object], where: str) -> Hook:
    command, kind = raw.get("command"), raw.get("type")
    if kind != "command" or not isinstance(command, str) or not command or "\0" in command:
        raise _NotServedError(f"a hook of the type {str(kind)[:MAXIMUM_NAME_CHARACTERS]!r} does not run")
    if raw.get("async") is True:
        raise _NotServedError("a hook that runs in the background does not run")
    if raw.get("shell") not in (None, "bash"):
        raise _NotServedError("a hook of another shell than bash does not run")
    matcher, condition = group.get("matcher") or "", raw.get("if") or ""
    if not isinstance(matcher, str) or not isinstance(condition, str):
        raise _NotServedError("matcher and if must be text")
    try:
        LinearPattern(matcher if matcher != "*" else "")
    except UnsupportedPatternError as error:
        raise _NotServedError(f"its matcher cannot be searched in linear time: {error}") from error
    arguments = raw.get("args")
    given = as_list(arguments)
    if arguments is not None and not all(isinstance(item, str) and "\0" not in item for item in given):
        raise _NotServedError("args must be a list of texts")
    timeout = raw.get("timeout")
    seconds = form.default_seconds
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout > 0:
        seconds = timeout * form.timeout_unit_seconds
    return Hook(
        form.dialect,
        form.served[name],
        name,
        command,
        where,
        matcher.strip() if matcher != "*" else "",
        condition,
        None if arguments is None else tuple(map(str, given)),
        min(seconds, MAXIMUM_SECONDS),
        group.get("sequential") is True,
    )
