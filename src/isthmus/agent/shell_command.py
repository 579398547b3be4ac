"""Splits a shell command into the simple commands it would run, for the approval policy.

Nothing is executed and nothing is looked up. Whatever is not understood for certain makes the whole command not
analysable (None), so that a person is asked: unknown syntax, commands whose name comes from an expansion, assignments
and functions (they can change what a name means), and programs whose work is to run other commands.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAXIMUM_LENGTH = 65_536
"""Longer commands are not analysed."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program with its arguments, quotes removed; an argument with an expansion in it is kept as written."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShellAnalysis:
    """What a command would run, in the order in which it is written.

    ``prefixes``: the beginnings of all commands that can be allowed for good, each once (``("git", "status")``,
    ``("ls",)``); empty when there is one that cannot. ``writes_files``: a redirection writes to a file.
    """

    commands: tuple[SimpleCommand, ...]
    prefixes: tuple[tuple[str, ...], ...]
    writes_files: bool


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RUNNERS = _names(
    """
    . ash bash builtin busybox bwrap chroot chrt command coproc csh dash dbus-run-session doas env eval exec
    expect fish flatpak-spawn flock hash alias unalias enable trap complete compgen mapfile readarray bind read
    getopts let ionice ksh mksh nice nohup nsenter parallel pkexec prlimit rbash rksh run0 runuser script setarch
    setpriv setsid sh source ssh sshpass start-stop-daemon stdbuf strace su sudo systemd-run taskset tcsh time timeout
    toybox unbuffer unshare watch xargs yash zsh
    """
)
"""Their arguments are commands, or change what later names mean: a permission for their name would be one for all."""

_SUBCOMMANDS = _names(
    """
    apt apt-get aws az brew bun cargo composer conda dnf docker dotnet flutter gcloud gem gh git glab go gradle
    helm hg just kubectl make mvn ninja nix npm pip pip3 pnpm podman poetry rustup snap svn systemctl terraform
    tox uv yarn
    """
)
"""Programs whose first word says what they do."""

_DEEPER = frozenset(
    {("npm", "run"), ("pnpm", "run"), ("yarn", "run"), ("bun", "run"), ("docker", "compose"), ("podman", "compose")}
    | {("gh", word) for word in ("issue", "pr", "repo", "release", "run", "workflow")}
    | {("uv", word) for word in ("pip", "run", "tool")}
    | {("git", word) for word in ("bisect", "config", "remote", "stash", "submodule", "worktree")}
    | {("poetry", "run"), ("cargo", "run"), ("go", "run"), ("go", "tool"), ("aws", "s3"), ("dotnet", "tool")}
)
"""Subcommands that need one more word before they say what they do; ``npm run`` itself is one of Gemini CLI's."""

_INTERPRETERS = re.compile(
    r"(?:python|pypy|perl|ruby|php|lua|luajit|node|nodejs|deno|bun|tclsh|wish|guile|Rscript|julia|groovy|scala|"
    r"osascript|pwsh|powershell|awk|gawk|mawk|nawk|gdb|vim|vi|nvim|emacs|ed|ex|irb|ghci|jshell|npx|pipx|bunx|uvx)[\d.]*"
)
"""Programs that run code given as an argument or a file: a prefix names the file, and inline code has none."""

_FIND_ACTIONS = frozenset({"-delete", "-exec", "-execdir", "-ok", "-okdir", "-fls", "-fprint", "-fprint0", "-fprintf"})

_TRANSPARENT = _names(
    """
    program list pipeline subshell compound_statement redirected_statement negated_command do_group if_statement
    elif_clause else_clause while_statement for_statement case_statement case_item command_substitution
    process_substitution string string_content concatenation herestring_redirect heredoc_redirect heredoc_start
    heredoc_body heredoc_content heredoc_end file_redirect file_descriptor command_name word number raw_string
    ansi_c_string translated_string simple_expansion variable_name special_variable_name comment command
    test_command unary_expression binary_expression negation_expression parenthesized_expression test_operator
    regex extglob_pattern brace_expression
    """
)
"""The syntax that is understood; any other named node makes a command not analysable."""

_SIMPLE_EXPANSION = re.compile(r"\$\{#?\w+\}")
_EXPANSION_IN_TEXT = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\(|[<>]\()")
_UNQUOTED_SYNTAX = re.compile(r"(?<!\\)(?:\\\\)*[;&|<>()\n\r`'\"]")
_ACTIVE_IN_STRING = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$[\w({@*#?!$-])")
_EXPANDS_IN_NAME = re.compile(r"(?<!\\)(?:\\\\)*[*?\[\]{}$!^~]")
_FILELESS_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_WRITING_REDIRECTIONS = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})


class _NotAnalysableError(Exception):
    """Something in the command is not understood for certain."""


def analyse(command: str) -> ShellAnalysis | None:
    """What `command`, given to ``bash -c``, would run; None when that cannot be said for certain."""
    if not command.strip() or "\r" in command:
        return None
    try:
        root = parse_shell(command)
        return None if root is None else _analysis(root)
    except _NotAnalysableError:
        return None


def parse_shell(command: str) -> "Node | None":
    """The syntax tree of `command`; None when it is no text that a shell can be given."""
    if len(command) > MAXIMUM_LENGTH or "\0" in command:
        return None
    try:
        return _parser().parse(command.encode()).root_node
    except UnicodeEncodeError:
        return None


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _analysis(root: "Node") -> ShellAnalysis:
    if root.has_error:
        raise _NotAnalysableError
    commands: list[SimpleCommand] = []
    writes_files = False
    for node in _nodes(root):
        _check(node)
        if node.type == "command":
            commands.append(SimpleCommand(_words(node)))
        elif node.type == "test_command":
            commands.append(SimpleCommand((_text(node.children[0]),)))
        elif node.type == "file_redirect":
            writes_files = _writes_file(node) or writes_files
    prefixes = [_prefix(command.words) for command in commands]
    known = tuple(dict.fromkeys(prefix for prefix in prefixes if prefix))
    return ShellAnalysis(tuple(commands), known if all(prefixes) else (), writes_files)


def _nodes(root: "Node") -> Iterator["Node"]:
    """Every node, in the order of the source, without recursion: a command may be nested deeply."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _check(node: "Node") -> None:
    """Refuse what is not understood, and text in which the parser has missed something."""
    if node.is_missing:
        raise _NotAnalysableError
    if not node.is_named:
        return
    match node.type:
        case "expansion":
            understood = _SIMPLE_EXPANSION.fullmatch(_text(node)) is not None
        case "word":
            understood = _UNQUOTED_SYNTAX.search(_text(node)) is None
        case "string_content" | "heredoc_content" | "extglob_pattern" | "regex":
            understood = _EXPANSION_IN_TEXT.search(_text(node)) is None
        case "heredoc_body":
            understood = _heredoc_is_understood(node)
        case "command_substitution":
            # Between backquotes a backslash makes the next backquote a nested substitution.
            understood = not (_text(node).startswith("`") and "\\" in _text(node))
        case "compound_statement":
            understood = node.children[0].type == "{"
        case "binary_expression" | "unary_expression" | "parenthesized_expression" | "negation_expression":
            understood = _is_in_test(node)
        case "for_statement":
            # A loop over PATH or IFS changes what the names in its body mean.
            variable = node.child_by_field_name("variable")
            understood = variable is not None and re.fullmatch(r"[a-z_][a-z0-9_]*", _text(variable)) is not None
        case _:
            understood = node.type in _TRANSPARENT
    if not understood:
        raise _NotAnalysableError


def _is_in_test(node: "Node") -> bool:
    parent = node.parent
    while parent is not None and parent.type.endswith("_expression"):
        parent = parent.parent
    return parent is not None and parent.type == "test_command" and parent.children[0].type in ("[", "[[")


def _heredoc_is_understood(node: "Node") -> bool:
    """A here-document without substitutions is text, and so is any one with a quoted delimiter."""
    if not re.search(r"`|\$\(|\$\{", _text(node)):
        return True
    parent = node.parent
    starts = [child for child in parent.children if child.type == "heredoc_start"] if parent is not None else []
    return bool(starts) and all(_text(start)[:1] in ("'", '"', "\\") for start in starts)


def _words(node: "Node") -> tuple[str, ...]:
    words: list[str] = []
    is_literal = True
    for child in node.children:
        if child.type == "command_name":
            inner = child.children[0] if child.children else child
            name = _literal(inner)
            unquoted = [part for part in (inner, *inner.children) if part.type == "word"]
            if not name or "=" in name or any(_EXPANDS_IN_NAME.search(_text(part)) for part in unquoted):
                raise _NotAnalysableError
            words.append(name)
        elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
            continue
        elif child.is_named:
            if not words:
                # An assignment, or anything else in front of the name.
                raise _NotAnalysableError
            literal = _literal(child)
            words.append(_text(child) if literal is None else literal)
            is_literal = is_literal and literal is not None
        else:
            words.append(_text(child))
    if not words:
        raise _NotAnalysableError
    name = words[0].rpartition("/")[2]
    runs_others = name in _RUNNERS or (name == "find" and not (is_literal and _FIND_ACTIONS.isdisjoint(words)))
    if runs_others or (name == "printf" and words[1:2] == ["-v"]):
        raise _NotAnalysableError
    return tuple(words)


def _literal(node: "Node") -> str | None:
    """The value of a word in which nothing is expanded, else None."""
    text = _text(node)
    match node.type:
        case "word" | "number":
            return re.sub(r"\\(.)", lambda found: "" if found[1] == "\n" else found[1], text, flags=re.DOTALL)
        case "raw_string":
            return text[1:-1]
        case "string":
            inner = text[1:-1]
            if any(child.type not in ('"', "string_content") for child in node.children):
                return None
            if _ACTIVE_IN_STRING.search(inner):
                return None
            return re.sub(r'\\([\\"$`\n])', lambda found: "" if found[1] == "\n" else found[1], inner)
        case "concatenation":
            parts = [_literal(child) for child in node.children]
            ends = [node.start_byte, *(child.end_byte for child in node.children)]
            gapless = all(child.start_byte == end for child, end in zip(node.children, ends, strict=False))
            return "".join(part for part in parts if part) if gapless and None not in parts else None
        case _:
            return None


def _writes_file(node: "Node") -> bool:
    operators = {_text(child) for child in node.children if not child.is_named}
    targets = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
    if len(targets) > 1:
        # The parser takes arguments that stand behind a redirection for targets of it.
        raise _NotAnalysableError
    if not operators & _WRITING_REDIRECTIONS:
        # Bash opens network connections for such names, in either direction.
        return any("/dev/tcp/" in _text(child) or "/dev/udp/" in _text(child) for child in node.children)
    if ">&" in operators and all(re.fullmatch(r"\d+-?|-", _text(target)) for target in targets):
        return False
    return not targets or any(_literal(target) not in _FILELESS_TARGETS for target in targets)


def _prefix(words: tuple[str, ...]) -> tuple[str, ...]:
    """The beginning of a command that can be allowed for good; empty when it would allow anything."""
    name = words[0].rpartition("/")[2]
    if _INTERPRETERS.fullmatch(name) and name != "bun":
        return words[:2] if len(words) > 1 and _is_plain(words[1]) else ()
    if name not in _SUBCOMMANDS:
        return words[:1]
    length = 3 if (name, *words[1:2]) in _DEEPER and len(words) > 2 else 2
    return words[:length] if len(words) > 1 and all(_is_plain(word) for word in words[1:length]) else ()


def _is_plain(word: str) -> bool:
    return re.fullmatch(r"[\w.@%+/,][\w.@%+/,:=-]*", word) is not None


def _text(node: "Node") -> str:
    return (node.text or b"").decode()
