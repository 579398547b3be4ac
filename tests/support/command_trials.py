"""A workspace in which commands are tried in copies, and what is known of it before and after."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from isthmus.files.path_rules import PathAccess
from isthmus.files.private_files import PRIVATE_FILES
from isthmus.sandbox.bubblewrap import Bubblewrap
from isthmus.sandbox.confinement import Confinement
from isthmus.sandbox.mounts import PrivatePlaces
from isthmus.tools.port.base import ToolContext
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.shell.run_shell_command import RunShellCommand
from isthmus.tools.shell.trials.command_trial import CommandTrials
from isthmus.tools.shell.trials.copying import CopyLimits
from support.programs import require
from support.sandboxing import confinement
from support.tool_calls import tool_context

FILES = {
    ".gitignore": "build/\ndist/\n*.log\n.coverage\nnode_modules/\n.venv/\n__pycache__/\nnotes/\n.env\n"
    "secrets.json\nid_rsa\n",
    ".env": "PASSWORD=of-the-user\n",
    "secrets.json": '{"token": "of-the-user"}',
    "id_rsa": "of-the-user",
    "notes/private.txt": "of-the-user\n",
    "Makefile": "all: build/app.txt\n\nbuild/app.txt: src/app.py\n\tmkdir -p build && cp $< $@\n\ntest:\n"
    "\tpython3 -m unittest discover -s tests\n",
    "sub/Makefile": "all:\n\tmkdir -p ../build && echo sub > ../build/sub.txt\n",
    "src/app.py": "def add(a, b):\n    return a + b\n",
    "tests/test_app.py": "import unittest\n\n\nclass TestApp(unittest.TestCase):\n    def test_it(self):\n"
    "        self.assertEqual(1, 1)\n",
    "tool.sh": "echo tool\n",
    "dist/tracked.js": "tracked\n",
}


@dataclass
class TriedWorkspace:
    """A workspace with a repository, secrets and links, beside a home folder and a folder that is not in it."""

    base: Path
    limits: CopyLimits = field(default_factory=CopyLimits)
    seconds: float = 20.0

    def __post_init__(self) -> None:
        self.root, self.home, self.outside, self.data = (
            self.base / name for name in ("workspace", "home", "outside", "data")
        )
        for folder in (self.root, self.home, self.outside, self.data):
            folder.mkdir(parents=True)
        (self.home / ".bashrc").write_text("# of the user\n")
        (self.outside / "target.txt").write_text("of the user\n")
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)
        git = require("git")
        identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        for words in (
            ("init", "-q"),
            ("add", "-A"),
            ("add", "-f", "dist/tracked.js"),
            (*identity, "commit", "-qm", "a"),
        ):
            subprocess.run([git, *words], cwd=self.root, check=True, timeout=60)
        (self.root / "linked.txt").hardlink_to(self.outside / "target.txt")
        (self.root / "away").symlink_to(self.outside)

    def another(self, name: str) -> "TriedWorkspace":
        """Return a new one with the same content."""
        other = object.__new__(TriedWorkspace)
        other.base, other.limits, other.seconds = self.base.parent / name, self.limits, self.seconds
        shutil.copytree(self.base, other.base, symlinks=True)
        other.root, other.home, other.outside, other.data = (
            other.base / part for part in ("workspace", "home", "outside", "data")
        )
        (other.root / "linked.txt").unlink()
        (other.root / "linked.txt").hardlink_to(other.outside / "target.txt")
        return other

    def shell(self) -> RunShellCommand:
        """Return the tool of an agent that tries commands."""
        found = Confinement(_bubblewrap(), PrivatePlaces(self.home, (self.data,)))
        trials = CommandTrials(found, self.data / "trials", seconds=self.seconds, limits=self.limits)
        return RunShellCommand(trials=trials)

    def context(self) -> ToolContext:
        """Return the context of a call whose user is asked about reads of secrets."""
        access = PathAccess(asked=(PRIVATE_FILES,), asks_ignored=True)
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "SECRET_OF_THE_USER": "x"}
        context = tool_context(self.root, environment)
        return replace(context, workspace=Workspace(self.root, access=access))

    def states(self, *folders: Path) -> dict[str, str]:
        """Return the modes and contents of all entries, by path."""
        found: dict[str, str] = {}
        for top in folders or (self.root, self.home, self.outside):
            for folder, names, files in os.walk(top):
                for name in (*names, *files):
                    path = Path(folder, name)
                    found[str(path.relative_to(self.base))] = _state(path)
        return found


@cache
def _bubblewrap() -> Bubblewrap:
    return confinement(Path("/nonexistent")).bubblewrap


def _state(path: Path) -> str:
    status = path.lstat()
    if path.is_symlink():
        return f"link {path.readlink()}"
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return f"{status.st_mode:o} {content}"
