"""Servers that are Isthmus itself: an agent that starts itself as its own server would do so without end.

A process that was started as a server leaves out that server, known by its mark, and all that are Isthmus by their
command. Other processes leave out only Isthmus as the same agent in the same folder. Pure, but that it follows
symbolic links. Not here: how a process learns as which server it was started, see :mod:`isthmus.runtime.server_chain`.
"""

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from isthmus.mcp_host.config.server_config import ServerConfig, StdioEndpoint
from isthmus.runtime.server_chain import StartedServer, server_chain

PROGRAM = "isthmus"
SERVE = ("mcp", "serve")
"""The command that speaks MCP on its standard streams."""
LONGEST_CHAIN = 2
"""Maximum number of servers of which each was started by the one before."""
_DEEPEST = 5
"""Maximum number of programs of which each runs the next in one command."""
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SHELLS = frozenset({"sh", "ash", "bash", "dash", "fish", "ksh", "zsh"})
_PREFIXES = frozenset(
    {"command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout"}
)
"""Programs that run the command in their arguments."""
_PACKAGE_RUNNERS = (("uvx",), ("uv", "run"), ("uv", "tool", "run"), ("pipx", "run"))
_PACKAGE_OPTIONS = frozenset(
    {
        *("-i", "-p", "--cache-dir", "--default-index", "--directory", "--env-file", "--extra-index-url", "--from"),
        *("--index", "--index-url", "--pip-args", "--project", "--python", "--spec"),
        *("--with", "--with-editable", "--with-requirements"),
    }
)
"""Options of these runners that have a value."""
_OPERATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")", "{", "}", "\n"})
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
Words: TypeAlias = tuple[str, ...]
_DIFFERENT = ("-m", "--model", "--mcp-config", "--strict-mcp-config", "--append-system-prompt", "--data-dir")
"""Options of another agent than the one that the user would start without them."""


def started_server(config: ServerConfig, endpoint: StdioEndpoint) -> StartedServer:
    """Return the server for the mark of its program."""
    return StartedServer.of(config.name, config.source, (endpoint.command, *endpoint.args))


def self_refusal(config: ServerConfig, workspace: Path, environment: Mapping[str, str]) -> str | None:
    """Return why an agent in `workspace` leaves a server out because it is Isthmus itself, and what to do; else None.

    `environment` is this process's.
    """
    endpoint = config.endpoint
    if not isinstance(endpoint, StdioEndpoint):
        return None
    chain, server = server_chain(environment), started_server(config, endpoint)
    if any(server.is_same(one) for one in chain):
        return "this process was started as this server, and would start itself without end; nothing has to be done"
    words = own_words(endpoint, environment.get("PATH"))
    if words is not None and chain:
        return (
            "it is Isthmus, which was started as a server of Isthmus here, and agents would start each other without "
            "end; nothing has to be done"
        )
    if len(chain) >= LONGEST_CHAIN:
        return "this process is the server of a server, which starts no programs; use it in an agent that you start"
    if words is None:
        return None
    remedy = f"remove it from {config.source}, or switch it off for Isthmus alone: isthmus mcp disable {config.name}"
    if words[: len(SERVE)] != SERVE:
        command = " ".join((PROGRAM, *words[: len(SERVE)]))
        return (
            f"`{command}` is not an MCP server, but would start Isthmus again; {remedy}, or write `isthmus mcp serve`"
        )
    if _is_different(words[len(SERVE) :], endpoint.cwd, workspace):
        return None
    return (
        f"it is this agent itself, which would start itself without end; {remedy}. Isthmus can only use another agent: "
        "add --workspace for another folder, or -m for another model"
    )


def _is_different(options: Words, cwd: Path, workspace: Path) -> bool:
    """Return whether `isthmus mcp serve` with these options is another agent than the one in `workspace`."""
    folder = cwd
    for word, following in pairwise((*options, "")):
        key, is_joined, value = word.partition("=")
        if key in _DIFFERENT or (word.startswith("-m") and not word.startswith("--")):
            return True
        if key == "--workspace":
            folder = cwd / Path(value if is_joined else following).expanduser()
    return folder.resolve() != workspace.resolve()


def own_words(endpoint: StdioEndpoint, path: str | None = None) -> tuple[str, ...] | None:
    """Return the arguments that Isthmus gets if a program is Isthmus, directly or by a shell, Python, uvx, ...

    None for any other program. `path` is the PATH on which programs are found.
    """
    return _own_words((endpoint.command, *endpoint.args), path, _DEEPEST)


def _own_words(words: Words, path: str | None, depth: int) -> Words | None:
    if not words or not depth:
        return None
    program, rest = Path(words[0]).name, words[1:]
    if PROGRAM in (program, _target(words[0], path)):
        return rest
    found: Iterator[Words] = iter(())
    if _PYTHON.fullmatch(program):
        found = _of_python(rest)
    elif program in _SHELLS:
        found = _of_shell(rest)
    elif program in _PREFIXES:
        found = _after_options(rest)
    else:
        runners = [runner for runner in _PACKAGE_RUNNERS if (program, *rest[: len(runner) - 1]) == runner]
        found = (inner for runner in runners for inner in _of_package(rest[len(runner) - 1 :]))
    for inner in found:
        if (own := _own_words(inner, path, depth - 1)) is not None:
            return own
    return None


def _target(word: str, path: str | None) -> str:
    """Return the name of the file that a program is a symbolic link to."""
    located = shutil.which(word, path=path)
    return "" if located is None else Path(located).resolve().name


def _of_python(words: Words) -> Iterator[Words]:
    """Yield the package of the module, or the script, that Python runs, with its arguments."""
    for index, word in enumerate(words):
        if word == "-m":
            module, *rest = words[index + 1 :] or ("",)
            yield (module.partition(".")[0], *rest)
            return
        if word == "-c":
            return
        if not word.startswith("-") and (index == 0 or words[index - 1] not in ("-W", "-X")):
            yield words[index:]
            return


def _of_shell(words: Words) -> Iterator[Words]:
    """Yield the commands in a text that a shell runs."""
    text = next((words[i + 1] for i, word in enumerate(words[:-1]) if re.fullmatch(r"-\w*c", word)), None)
    if text is None:
        return
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    try:
        for token in lexer:
            if token in _OPERATORS:
                yield from _without_assignments(command)
                command = []
            else:
                command.append(token)
    except ValueError:  # a quote without its end
        return
    yield from _without_assignments(command)


def _without_assignments(words: Sequence[str]) -> Iterator[Words]:
    start = next((index for index, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word)), len(words))
    yield tuple(words[start:])


def _after_options(words: Words) -> Iterator[Words]:
    """Yield what may be the command after options, whose values look like commands, and assignments."""
    if len(words) > 1 and words[0] in ("-S", "--split-string"):
        yield from _of_shell(("-c", words[1]))
    plain = [i for i, word in enumerate(words) if not (word.startswith("-") or _ASSIGNMENT.fullmatch(word))]
    for index in plain[:2]:
        yield words[index:]


def _of_package(words: Words) -> Iterator[Words]:
    """Yield the program that a runner of packages runs, without its version, with its arguments."""
    for index, word in enumerate(words):
        if word in ("-m", "--module"):
            yield words[index + 1 :]
            return
        if not (word.startswith("-") or (index and words[index - 1] in _PACKAGE_OPTIONS)):
            yield (re.split(r"[@=\[<>~!]", word, maxsplit=1)[0], *words[index + 1 :])
            return
