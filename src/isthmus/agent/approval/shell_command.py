"""Split a shell command into the simple commands that it would run, for the approval policy.

Nothing is executed or looked up. Any part that is not understood for certain makes the whole command not analysable
(None), so that a user is asked: unknown syntax, commands whose name comes from an expansion, assignments and functions
(they can change the meaning of a name), and programs whose purpose is to run other commands.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from isthmus.agent.approval.command_folders import ANYWHERE, CHANGERS, HERE, Folders, folders_of
from isthmus.agent.approval.free_options import PACKAGE_RUNNERS, WRAPPERS, asked_each_time, has_prefix
from isthmus.agent.approval.harmless_wrappers import begins_pipeline, inner_command, is_activation, is_harmless
from isthmus.agent.approval.known_programs.rows import known_program
from isthmus.agent.approval.shell_rules import RULES, Rule
from isthmus.agent.approval.shell_syntax import (
    Extent,
    ShellWord,
    Syntax,
    literal,
    parse_shell,
    syntax_of,
    text_of,
    word_of,
)
from isthmus.record import record

if TYPE_CHECKING:
    from tree_sitter import Node

KEPT_ANALYSES = 16
"""Maximum number of analyses that are kept: several guards look at each command of a call."""


@record
class SimpleCommand:
    """A program with its arguments, without quotes; an argument that contains an expansion is kept as written."""

    words: tuple[str, ...]
    certain: tuple[bool, ...] = ()
    """Whether bash produces exactly this word from the source, for each word."""
    asked: str = ""
    """The program with the option or operand that needs an answer each time; see `free_options`."""
    folders: Folders = HERE
    """Possible folders in which it runs."""
    is_wrapper: bool = False
    """Whether it only runs the command after it, about which permissions decide; see `harmless_wrappers`."""

    @property
    def prefix(self) -> tuple[str, ...]:
        """The prefix under which it can be allowed; empty if it would allow anything."""
        return _prefix(self.words)

    @property
    def is_free_of_folder(self) -> bool:
        """Whether it runs nothing that is in its folder, so that a permission for it holds in all of them."""
        return self.words[0] in FREE_OF_FOLDER


@record
class ShellAnalysis:
    """The programs that a command would run, in the order of the source.

    ``prefixes`` are the distinct prefixes under which all commands can be allowed (``("git", "status")``, ``("ls",)``);
    empty if one command has no such prefix, or does more than its prefix suggests. ``writes_files`` is whether a
    redirection writes to a file.
    """

    commands: tuple[SimpleCommand, ...]
    prefixes: tuple[tuple[str, ...], ...]
    writes_files: bool
    asked: tuple[str, ...] = ()
    """Parts that no permission for a prefix covers; see `free_options`."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RUNNERS = _names(
    """
    . ash bash builtin busybox bwrap chroot chrt command coproc csh dash dbus-run-session doas env eval exec
    expect fish flatpak-spawn flock hash alias unalias enable trap complete compgen mapfile readarray bind read
    getopts let declare typeset local export readonly unset set shopt history fc jobs caller compopt help suspend logout
    ionice ksh mksh nice nohup nsenter parallel pkexec prlimit rbash rksh run0 runuser script setarch
    setpriv setsid sh source ssh sshpass start-stop-daemon stdbuf strace su sudo systemd-run taskset tcsh time timeout
    at batch c8 cgexec chpst concurrently crontab cross-env cross-env-shell dbus-launch dotenv entr env-cmd fakeroot
    firejail ltrace nodemon npm-watch numactl nyc perf proxychains rlwrap screen scl start-server-and-test tmux torsocks
    tsx valgrind wireit xvfb-run toybox unbuffer unshare watch xargs yash zsh
    """
)
"""Programs whose arguments are commands or change the meaning of later names: allowing them would allow everything."""

FREE_OF_FOLDER = _names(
    """
    [ [[ basename cat cd cmp comm cut date df dirname du echo egrep exit expr false fgrep file grep groups head
    hostname id ls md5sum nproc od popd printf ps pushd pwd readlink realpath seq sha1sum sha256sum sleep sort stat
    tail test tr true type uname uniq uptime wc which whoami
    """
)
"""Programs that run nothing and load no settings of the folder in which they work."""

_SUBCOMMANDS = _names(
    """
    apt apt-get aws az brew bun cargo composer conda coverage deno dnf docker dotnet flutter gcloud gem gh git glab
    go gradle hatch helm hg just kubectl make mvn ninja nix npm pdm pip pip3 pipenv pnpm podman poetry
    rustup snap svn systemctl terraform tox uv yarn
    """
)
"""Programs whose first argument determines their effect."""

_DEEPER = frozenset(
    {
        ("npm", "run"),
        ("pnpm", "run"),
        ("yarn", "run"),
        ("bun", "run"),
        ("coverage", "run"),
        ("deno", "run"),
        ("docker", "compose"),
        ("podman", "compose"),
    }
    | {("gh", word) for word in ("issue", "pr", "repo", "release", "run", "workflow")}
    | {("uv", word) for word in ("pip", "run", "tool")}
    | {("git", word) for word in ("bisect", "config", "remote", "stash", "submodule", "worktree")}
    | {("poetry", "run"), ("cargo", "run"), ("go", "run"), ("go", "tool"), ("aws", "s3"), ("dotnet", "tool")}
)
"""Subcommands whose effect is determined by one more word; Gemini CLI itself allows ``npm run`` as a whole."""

_QUIET = frozenset({"-s", "--silent", "-q", "--quiet"})
"""Options after a subcommand that only reduce the output."""

_INTERPRETERS = re.compile(
    r"(?:python|pypy|perl|ruby|php|lua|luajit|node|nodejs|ts-node|tclsh|wish|guile|Rscript|julia|groovy|scala|"
    r"osascript|pwsh|powershell|bash|dash|ksh|sh|zsh)[\d.]*"
)
"""Programs that run a file, which gets all words after it: a prefix names the file, and inline code has no prefix."""

_SCRIPTED = _names("awk gawk mawk nawk")
"""Programs whose first word is a script."""

_SCRIPT = re.compile(r"(?!/dev/|/proc/)[\w.@%+/,][\w.@%+/,:=-]*[./][\w.@%+/,:=-]*")
"""A file that a shell may be allowed to run: its name is that of a file, not of a program."""

_RESERVED = _names("! case coproc do done elif else esac fi for function if in select then until while { } [[ ]]")
"""Words of the shell's own syntax, without `time`, which counts as a wrapper alone."""

_FIND_ACTIONS = frozenset({"-delete", "-exec", "-execdir", "-ok", "-okdir", "-fls", "-fprint", "-fprint0", "-fprintf"})

_TRANSPARENT = _names(
    """
    program list pipeline subshell compound_statement redirected_statement negated_command do_group if_statement
    elif_clause else_clause while_statement for_statement case_statement case_item command_substitution
    process_substitution string string_content concatenation herestring_redirect heredoc_redirect heredoc_start
    heredoc_body heredoc_content heredoc_end file_redirect file_descriptor command_name word number raw_string
    ansi_c_string simple_expansion variable_name special_variable_name comment command
    test_command unary_expression binary_expression negation_expression parenthesized_expression test_operator
    regex extglob_pattern brace_expression
    """
)
"""Node types that are understood; any other named node makes a command not analysable."""

_LOOP_VARIABLE = re.compile(r"(?!npm_|\w*proxy)[a-z_][a-z0-9_]*")
_HARMLESS_FORMAT = re.compile(r"(?!-)(?:[^%]|%%|%[-+ #0-9.*]*[diouxXeEfFgGaAcsbq])*", re.DOTALL)
"""Format of printf that only prints."""
_SIMPLE_EXPANSION = re.compile(r"\$\{#?\w+\}")
_EXPANSION_IN_TEXT = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\(|[<>]\()")
_UNQUOTED_SYNTAX = re.compile(r"(?<!\\)(?:\\\\)*[;&|<>()\n\r`'\"]")
_EXPANDS_IN_NAME = re.compile(r"(?<!\\)(?:\\\\)*[*?\[\]{}$!^~]")
_FILELESS_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_WRITING_REDIRECTIONS = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})


class _NotAnalysableError(Exception):
    """Marks a command with a part that is not understood for certain."""


def analyse(command: str, rules: Sequence[Rule] = RULES) -> ShellAnalysis | None:
    """Return what `command`, given to ``bash -c``, would run; None if that is not certain.

    Only tests pass other `rules`.
    """
    return _analysed(command, tuple(rules))


@lru_cache(maxsize=KEPT_ANALYSES)
def _analysed(command: str, rules: tuple[Rule, ...]) -> ShellAnalysis | None:
    if not command.strip() or "\r" in command:
        return None
    try:
        root = parse_shell(command)
        return None if root is None else _analysis(root, rules)
    except _NotAnalysableError:
        return None


def _analysis(root: "Node", rules: Sequence[Rule]) -> ShellAnalysis:
    if root.has_error:
        raise _NotAnalysableError
    syntax = syntax_of(root)
    if syntax is None:
        raise _NotAnalysableError
    for node in syntax.nodes:
        _check(node)
    if not all(rule(syntax) for rule in rules):
        raise _NotAnalysableError
    commands = _commands(syntax)
    writes_files = True in [_writes_file(node) for node in syntax.nodes if node.type == "file_redirect"]
    prefixes = [command.prefix for command in commands if not command.is_wrapper]
    known = tuple(dict.fromkeys(prefix for prefix in prefixes if prefix))
    asked = tuple(command.asked for command in commands if command.asked) + _programs_in_other_folders(commands)
    are_placed = all(
        command.is_wrapper or command.is_free_of_folder or None not in command.folders for command in commands
    )
    return ShellAnalysis(commands, known if all(prefixes) and are_placed and not asked else (), writes_files, asked)


def _commands(syntax: Syntax) -> tuple[SimpleCommand, ...]:
    commands: list[SimpleCommand] = []
    folders = folders_of(syntax.root)
    for node in syntax.nodes:
        if node.type == "command":
            place = folders.get(node.id, ANYWHERE)
            commands += [replace(command, folders=place) for command in _simple_commands(node)]
        elif node.type == "test_command":
            commands.append(SimpleCommand((text_of(node.children[0]),), (True,)))
    return tuple(commands)


def _check(node: "Node") -> None:
    """Refuse a node that is not understood, and text in which the parser has missed something."""
    if node.is_missing:
        raise _NotAnalysableError
    if not node.is_named:
        return
    match node.type:
        case "expansion":
            understood = _SIMPLE_EXPANSION.fullmatch(text_of(node)) is not None
        case "word":
            understood = _UNQUOTED_SYNTAX.search(text_of(node)) is None
        case "string_content" | "heredoc_content" | "extglob_pattern" | "regex":
            understood = _EXPANSION_IN_TEXT.search(text_of(node)) is None
        case "command_substitution":
            # Between backquotes a backslash makes the next backquote a nested substitution; others end it.
            text = text_of(node)
            understood = not (text.startswith("`") and ("\\" in text or "`" in text[1:-1]))
        case "compound_statement":
            understood = node.children[0].type == "{"
        case "binary_expression" | "unary_expression" | "parenthesized_expression" | "negation_expression":
            understood = _is_in_test(node)
        case "for_statement":
            # A loop over PATH or IFS changes what the names in its body mean; http_proxy, where they connect.
            variable = node.child_by_field_name("variable")
            understood = variable is not None and _LOOP_VARIABLE.fullmatch(text_of(variable)) is not None
        case "variable_assignment":
            is_in_front = node.parent is not None and node.parent.type == "command"
            understood = is_in_front and is_harmless(text_of(node))
        case _:
            understood = node.type in _TRANSPARENT
    if not understood:
        raise _NotAnalysableError


def _is_in_test(node: "Node") -> bool:
    parent = node.parent
    while parent is not None and parent.type.endswith("_expression"):
        parent = parent.parent
    return parent is not None and parent.type == "test_command" and parent.children[0].type in ("[", "[[")


def _programs_in_other_folders(commands: Sequence[SimpleCommand]) -> tuple[str, ...]:
    """Return the programs named by a relative path, which depends on the folder, if a command changes the folder."""
    names = [command.words[0] for command in commands]
    if not CHANGERS & set(names):
        return ()
    return tuple(f"{name} in another folder" for name in names if "/" in name and not name.startswith("/"))


def _simple_commands(node: "Node") -> list[SimpleCommand]:
    """Return the command of a node, behind the wrappers around it."""
    words: list[ShellWord] = []
    written = ""
    for child in node.children:
        if child.type == "variable_assignment" and not words:
            continue
        if child.type == "command_name":
            inner = child.children[0] if child.children else child
            written = text_of(inner) if child == node.children[0] and begins_pipeline(node) else ""
            words.append(_name(inner))
        elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
            continue
        elif not words:
            # An assignment, or anything else in front of the name.
            raise _NotAnalysableError
        else:
            words.append(word_of(child))
    if not words:
        raise _NotAnalysableError
    commands: list[SimpleCommand] = []
    while (inner := inner_command(words, written)) is not None:
        commands.append(SimpleCommand(*_texts(words), is_wrapper=True))
        words, written = list(inner), ""
    if _runs_others(words):
        raise _NotAnalysableError
    return [*commands, SimpleCommand(*_texts(words), asked_each_time(words))]


def _texts(words: Sequence[ShellWord]) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    return tuple(word.text for word in words), tuple(word.extent is Extent.EXACT for word in words)


def _name(node: "Node") -> ShellWord:
    word = word_of(node)
    unquoted = [part for part in (node, *node.children) if part.type == "word"]
    if not word.text or word.extent is not Extent.EXACT or "=" in word.text or text_of(node) in _RESERVED:
        raise _NotAnalysableError
    if any(_EXPANDS_IN_NAME.search(text_of(part)) for part in unquoted):
        raise _NotAnalysableError
    return word


def _runs_others(words: Sequence[ShellWord]) -> bool:
    name = words[0].text.rpartition("/")[2]
    match name:
        case "find":
            return any(word.extent is not Extent.EXACT or word.text in _FIND_ACTIONS for word in words)
        case "printf":
            # %n assigns to the variable that an argument names, which may be PATH.
            return len(words) > 1 and (
                words[1].extent is not Extent.EXACT or not _HARMLESS_FORMAT.fullmatch(words[1].text)
            )
        case "bash" | "dash" | "ksh" | "sh" | "zsh":
            # A named script is like an interpreter's file; a device or the result of a substitution is not.
            return not (len(words) > 1 and words[1].extent is Extent.EXACT and _SCRIPT.fullmatch(words[1].text))
        case "." | "source" if words[0].text == name:
            return not is_activation(words)
        case "wait":
            return any(word.may_be_option or word.text.startswith("-") for word in words[1:])
        case _ if name in WRAPPERS and len(words) > 2 and words[1].text == "run":
            # The following words are a command of their own; options before it are not analysed.
            return words[2].extent is not Extent.EXACT or words[2].text.startswith("-") or _runs_others(words[2:])
        case _:
            return name in _RUNNERS


def _writes_file(node: "Node") -> bool:
    operators = {text_of(child) for child in node.children if not child.is_named}
    targets = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
    if len(targets) > 1:
        # The parser mistakes arguments after a redirection for its targets.
        raise _NotAnalysableError
    if not operators & _WRITING_REDIRECTIONS:
        return False
    if ">&" in operators and all(re.fullmatch(r"\d+-?|-", text_of(target)) for target in targets):
        return False
    return not targets or any(literal(target) not in _FILELESS_TARGETS for target in targets)


def _prefix(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the prefix under which a command can be allowed; empty if too little is known of what it allows."""
    program = words[0]
    name = program.rpartition("/")[2]
    if name in (".", "source"):
        return words
    if _INTERPRETERS.fullmatch(name):
        return words[:2] if len(words) > 1 and _is_plain(words[1]) else ()
    if name in WRAPPERS and len(words) > 2 and words[1] == "run":
        inner = _prefix(words[2:])
        return (*words[:2], *inner) if inner else ()
    if not has_prefix(words):
        # Nothing is known of a project's own program, whose name says all.
        return (program,) if _is_of_the_project(program) and known_program(words) is None else ()
    if name in PACKAGE_RUNNERS or name in _SCRIPTED:
        return words[:2] if len(words) > 1 and _is_plain(words[1]) else ()
    if name not in _SUBCOMMANDS:
        return words[:1]
    if name == "tox" and words[1:2] == ("-e",):
        # The environment determines what tox does, as a subcommand would.
        return words[:3] if len(words) > 2 and _is_plain(words[2]) else ()
    if len(words) > 2 and words[1] == "run" and words[2] in _QUIET:
        return words[:4] if len(words) > 3 and _is_plain(words[3]) else ()
    length = 3 if (name, *words[1:2]) in _DEEPER and len(words) > 2 else 2
    return words[:length] if len(words) > 1 and all(_is_plain(word) for word in words[1:length]) else ()


def _is_of_the_project(name: str) -> bool:
    """Return whether a program is named by a path into its folder."""
    return "/" in name and not name.startswith("/") and ".." not in name.split("/")


def _is_plain(word: str) -> bool:
    return re.fullmatch(r"[\w.@%+/,][\w.@%+/,:=-]*", word) is not None
