"""Command lines with options of real programs, mined from their own help, and what each line does in a sandbox.

Bubblewrap makes the sandbox: no network, a read-only system, a scratch folder with a repository. ``run.sh`` is a
marker: whatever starts it leaves a file. After each line the scratch folder is compared with what it was.
"""

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from isthmus.agent.approval.grants import PROCEED_ALWAYS_PREFIX, Grant, grants_of
from isthmus.agent.approval.known_programs.rows import known_program
from isthmus.agent.approval.policy import Allow, ApprovalRequired, Policy, decide
from isthmus.tools.port.base import ToolKind
from support.programs import bubblewrap

FOLDER = "/mnt/work"
MARKER, OUTPUT = "./run.sh", "made"
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z0-9][\w-]*")
_RISKY = re.compile(r"out|exec|command|pager|edit|program|prog|file|dir|log|config|plugin|script|filter|hook|pre|shell")
HELP_SECONDS, LINE_SECONDS = 5, 5
MAXIMUM_OPTIONS = 150
"""Maximum number of options of one program; those whose names suggest a program or a file come first."""
GIT_OPTIONS = (
    *("--output", "-o", "--ext-diff", "--textconv", "-O", "--open-files-in-pager", "--exec", "--upload-pack", "-u"),
    *("--receive-pack", "--template", "-c", "--config", "-x", "--extcmd", "--tool", "--editor", "--git-dir", "-t"),
    *("--separate-git-dir", "--output-directory", "--interactive", "-i", "--edit", "-e", "--remote", "--filters"),
)
"""Options of git that are tried with each sub-command, whatever its help says."""
PATH = "/usr/local/bin:/usr/bin:/bin"
OWN_STATE = {
    "mypy": "work/.mypy_cache/",
    "npm": "home/.npm/",
    "pytest": "work/.pytest_cache/",
    "svn": "home/.subversion/",
}
"""Folders that programs keep for themselves, whatever they are asked to do."""
PURPOSES = {"npm": {"package.json", "package-lock.json", ".package-lock.json"}}
"""Files that a program changes by purpose, without their being named."""
_NAMES = re.compile(r"[\w./-]+")


@dataclass(frozen=True, slots=True)
class Effect:
    """Effects of a line: whether the marker was started, and the files that were made, changed or removed."""

    ran: bool
    changed: tuple[str, ...]
    is_over: bool


class OptionJudge:
    """The sandbox. ``folder`` is for its scratch folder; unpacked ``packages`` may add programs."""

    def __init__(self, folder: Path, packages: Path | None = None) -> None:
        self._scratch, self._template, self._packages = folder / "scratch", folder / "template", packages
        _make_project(self._template)
        self._restore()

    def help(self, words: list[str]) -> str:
        """Return what a command prints, however it ends."""
        try:
            ran = self._start(words, HELP_SECONDS)
        except subprocess.TimeoutExpired:
            return ""
        if self._difference():
            self._restore()
        return ran.stdout.decode(errors="replace")

    def run(self, line: str) -> Effect:
        """Run a line in bash; the scratch folder is as new before each."""
        is_over = False
        try:
            self._start(["bash", "-c", line], LINE_SECONDS)
        except subprocess.TimeoutExpired:
            is_over = True
        changed = self._difference()
        effect = Effect((self._scratch / "home/ran").exists(), changed, is_over)
        if changed:
            self._restore()
        return effect

    def _start(self, words: list[str], seconds: int) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [
                *(bubblewrap() / "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"),
                *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
                *("--tmpfs", "/root", "--tmpfs", "/run", "--tmpfs", "/var/tmp", "--tmpfs", "/home"),
                *("--bind", self._scratch, "/mnt", "--chdir", "/mnt/work", "--setenv", "HOME", "/mnt/home"),
                *self._programs(),
                *("--setenv", "LC_ALL", "C.UTF-8"),
                *("--setenv", "GIT_EDITOR", "true", "--setenv", "EDITOR", "true", "--setenv", "PAGER", "cat"),
                *words,
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=seconds,
        )  # fmt: skip

    def _programs(self) -> tuple[str | Path, ...]:
        if self._packages is None:
            return ("--setenv", "PATH", PATH)
        libraries = "/srv/usr/lib/x86_64-linux-gnu:/srv/usr/lib/aarch64-linux-gnu:/srv/usr/lib"
        return (
            *("--ro-bind", self._packages, "/srv", "--setenv", "PATH", f"/srv/usr/bin:/srv/bin:{PATH}"),
            *("--setenv", "LD_LIBRARY_PATH", libraries, "--setenv", "PERL5LIB", "/srv/usr/share/perl5"),
            *("--setenv", "PYTHONPATH", "/srv/usr/lib/python3/dist-packages"),
        )

    def _restore(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)
        shutil.copytree(self._template, self._scratch, symlinks=True)

    def _difference(self) -> tuple[str, ...]:
        before, after = _listing(self._template), _listing(self._scratch)
        return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))


def _make_project(folder: Path) -> None:
    work = folder / "work"
    work.mkdir(parents=True)
    (folder / "home").mkdir()
    for name, text in {
        "a": "b\na\nb\n",
        "b": "a\n",
        "c.c": "int x;\n",
        "run.sh": "#!/bin/sh\n: > /mnt/home/ran\n",
    }.items():
        (work / name).write_text(text, "utf-8")
    (work / "run.sh").chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    names = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (["init", "-q", "-b", "main"], ["add", "."], [*names, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=work, env=environment, check=True, timeout=60)
    (work / "b").write_text("a\nchanged\n", "utf-8")


def _listing(folder: Path) -> Mapping[str, tuple[int, bytes]]:
    found: dict[str, tuple[int, bytes]] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            relative = str(path.relative_to(folder))
            if not relative.startswith("work/.git/"):
                found[relative] = (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
    return found


def options_of(judge: OptionJudge, command: tuple[str, ...]) -> list[str]:
    """Return the options that a program names in its help, those first whose names suggest a program or a file."""
    if command[0] == "git":
        text = judge.help([*command, "-h"]) + judge.help([*command, "--git-completion-helper-all"])
        text += " ".join(("", *GIT_OPTIONS))
    else:
        text = judge.help([*command, "--help"])
        text = text if _OPTION.search(text) else judge.help([*command, "-h"])
    options = dict.fromkeys(_OPTION.findall(text))
    return sorted(options, key=lambda option: _RISKY.search(option) is None)[:MAXIMUM_OPTIONS]


def lines_of(command: tuple[str, ...], options: list[str], chance: random.Random) -> Iterator[str]:
    """Yield lines of a program with each of its options, written in several ways."""
    program = " ".join(command)
    for option in options:
        value = chance.choice((MARKER, OUTPUT))
        forms = [f"{option} {value}", f"{option}={value}", option]
        if not option.startswith("--"):
            forms += [f"{option}{value}", f"-a{option[1:]} {value}"]
        elif len(option) > 6:
            forms.append(f"{option[:-2]}={value}")
        for form in chance.sample(forms, 2):
            yield chance.choice(
                (f"{program} {form} a", f"{program} a {form}", f"{program} {form}", f"{program} a {form} b")
            )
    yield from (f"{program} a {OUTPUT}", f"{program} a {MARKER}", f"{program} {MARKER}", f"{program} {MARKER} a")


def lasting_grants(command: tuple[str, ...]) -> frozenset[Grant]:
    """Return the grants of the lasting answer for the first words of a command; none if it is not offered."""
    arguments = {"command": " ".join((*command, "a"))}
    asked = decide(Policy(), "run_shell_command", ToolKind.EXECUTE, arguments, folder=FOLDER)
    if not isinstance(asked, ApprovalRequired) or PROCEED_ALWAYS_PREFIX not in [one.id for one in asked.options]:
        return frozenset()
    return grants_of(PROCEED_ALWAYS_PREFIX, "run_shell_command", ToolKind.EXECUTE, arguments, folder=FOLDER)


def is_allowed(line: str, grants: frozenset[Grant]) -> bool:
    """Return whether a line runs without a question."""
    policy = Policy(grants=grants)
    return isinstance(decide(policy, "run_shell_command", ToolKind.EXECUTE, {"command": line}, folder=FOLDER), Allow)


def problem_of(line: str, effect: Effect) -> str:
    """Return the effect of a line that its grant does not name, or an empty text."""
    if effect.ran:
        return "ran another program"
    words = line.split()
    known = known_program(words)
    own = OWN_STATE.get(words[0], "home/.cache/")
    changed = [name for name in effect.changed if not name.startswith((own, "home/.cache/"))]
    if known is not None and known.row is not None and "writes" in known.row.traits:
        if words[0] == "git":
            return ""  # The working tree is what these sub-commands change.
        named = {Path(name).name for name in _NAMES.findall(line)} | PURPOSES.get(words[0], set())
        rest = [name for name in changed if not any(Path(name).name.startswith(each) for each in named)]
    else:
        rest = changed
    return f"wrote {', '.join(rest)}" if rest else ""


def git_commands() -> list[tuple[str, ...]]:
    """Return all sub-commands of the installed git."""
    listed = subprocess.run(
        ["git", "--list-cmds=main,nohelpers"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return [("git", name) for name in sorted(set(listed.split()))]


def programs_of(root: Path) -> list[tuple[str, ...]]:
    """Return the programs of a system but git, by the names of their files."""
    names = {
        path.name for folder in ("usr/bin", "usr/local/bin") for path in (root / folder).glob("*") if path.is_file()
    }
    return [(name,) for name in sorted(names - {"git"}) if _NAMES.fullmatch(name)]
