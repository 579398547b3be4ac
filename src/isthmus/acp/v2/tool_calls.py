"""Tool calls in version 2: one update for new and changed ones, changes of files as patches, and permissions. Pure."""

from typing import Any, ClassVar, TypeAlias

from isthmus.acp.front.questions import CommandPermission
from isthmus.acp.v1.client_requests import PermissionOption, PermissionRequest
from isthmus.acp.v1.connection import Meta
from isthmus.acp.v1.updates import BlockContent, CallContent, CallKind, DiffContent, Location, ToolCallState
from isthmus.record import record
from isthmus.text.diff import MAXIMUM_DIFF_CHARACTERS, unified_diff

_GIT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_TITLES = {CallKind.EDIT: "Allow this change?", CallKind.EXECUTE: "Run this command?"}


@record
class FileChange:
    """A change of one file; ``operation`` is ``add`` or ``modify``, ``path`` absolute."""

    operation: str
    path: str
    file_type: str = "text"


@record
class DiffPatch:
    """A change as text."""

    text: str
    format: str = "git_patch"


@record
class DiffContentV2:
    """Changes of files; ``patch`` is left out if there is none that is short enough."""

    TAG: ClassVar = ("type", "diff")
    changes: tuple[FileChange, ...]
    patch: DiffPatch | None = None


CallContentV2: TypeAlias = BlockContent | DiffContentV2


@record
class ToolCallStateV2:
    """A tool call as far as it is stated; members that are None are unchanged."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: tuple[CallContentV2, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None
    name: str | None = None


@record
class ToolCallUpdateV2(ToolCallStateV2):
    """A new tool call, or a change of one."""

    TAG: ClassVar = ("sessionUpdate", "tool_call_update")


@record
class ToolCallSubject:
    """A tool call that needs permission."""

    TAG: ClassVar = ("type", "tool_call")
    tool_call: ToolCallStateV2


@record
class CommandSubject:
    """A command that needs permission, in a folder with an absolute path."""

    TAG: ClassVar = ("type", "command")
    command: str
    cwd: str
    tool_call_id: str


@record
class PermissionRequestV2:
    """``session/request_permission``: whether something may happen."""

    METHOD: ClassVar = "session/request_permission"
    session_id: str
    title: str
    subject: ToolCallSubject | CommandSubject
    options: tuple[PermissionOption, ...]
    description: str | None = None
    meta: Meta = None


def call_update(state: ToolCallState) -> ToolCallUpdateV2:
    """Return the update for a new or changed tool call."""
    return ToolCallUpdateV2(*_members(state))


def permission(request: PermissionRequest) -> PermissionRequestV2:
    """Return the request for a permission: of a command by itself, else of the tool call."""
    call = request.tool_call
    if isinstance(request, CommandPermission):
        subject = CommandSubject(request.command, request.cwd, call.tool_call_id)
        return PermissionRequestV2(request.session_id, _TITLES[CallKind.EXECUTE], subject, request.options, call.title)
    about = call.title or ""
    # A call that asks by its title, such as that for the trust in a folder, is not asked about in other words.
    title = (
        about
        if about.endswith("?")
        else next((text for kind, text in _TITLES.items() if kind == call.kind), "Allow this?")
    )
    description = about if about != title else None
    subject = ToolCallSubject(ToolCallStateV2(*_members(call)))
    return PermissionRequestV2(request.session_id, title, subject, request.options, description or None)


def file_diff(diff: DiffContent) -> DiffContentV2:
    """Return the change of a file with its patch, in which paths are absolute."""
    path, is_new = diff.path, diff.old_text is None
    change = FileChange("add" if is_new else "modify", path)
    text = git_patch(path, diff.old_text, diff.new_text)
    return DiffContentV2((change,), DiffPatch(text) if text else None)


def git_patch(path: str, old: str | None, new: str) -> str:
    """Return the patch of a file in git's form; empty if there are no lines in it, or too many to be shown.

    Paths have no prefix before the absolute path, as the protocol shows them; ``old`` is None for a new file.
    """
    if (old or "") == new:
        return ""
    changes = unified_diff(old, new, "file")  # its head is replaced
    if len(changes) > MAXIMUM_DIFF_CHARACTERS:
        return ""
    name = _git_path(path)
    head = f"diff --git {name} {name}\n" + ("new file mode 100644\n" if old is None else "")
    _, _, hunks = changes.split("\n", 2)
    end = "\t" if " " in name else ""  # marks the end of a name with spaces, as git does
    return f"{head}--- {'/dev/null' if old is None else name + end}\n+++ {name}{end}\n{hunks}"


def _members(state: ToolCallState) -> tuple[Any, ...]:
    content = tuple(_content(item) for item in state.content) if state.content is not None else None
    return (
        state.tool_call_id,
        state.title,
        state.kind,
        state.status,
        content,
        state.locations,
        state.raw_input,
        state.raw_output,
        state.name,
    )


def _content(item: CallContent) -> CallContent | DiffContentV2:
    return file_diff(item) if isinstance(item, DiffContent) else item


def _git_path(path: str) -> str:
    escaped = "".join(_GIT_ESCAPES.get(c) or (f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c) for c in path)
    return f'"{escaped}"' if escaped != path else path
