"""Real git repositories for tests: a bare one that machines share, and the data folders of these machines."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from isthmus.worktrees.repositories import Repositories
from isthmus.worktrees.repository_url import RepositoryUrl, parse_repository
from support.programs import require

IDENTITY = ("-c", "user.name=A User", "-c", "user.email=user@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str, given: str | None = None) -> str:
    """Run git in a folder, and return its output without spaces around it."""
    command = [str(require("git")), *IDENTITY, *arguments]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=60, input=given)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_repository(folder: Path, files: Mapping[str, str]) -> Path:
    """Make a repository with one commit of these files."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


class SharedRepository:
    """A bare repository with a commit, and machines that only have its URL in common."""

    def __init__(self, folder: Path, template: Path) -> None:
        self.folder = folder
        self.user = folder / "user's checkout"
        self.bare = folder / "shared.git"
        shutil.copytree(template / "user", self.user)
        shutil.copytree(template / "bare", self.bare)
        git(self.user, "remote", "add", "origin", str(self.bare))
        self.environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}

    @staticmethod
    def make_template(folder: Path, files: Mapping[str, str]) -> Path:
        """Make the repositories that are copied for each test."""
        make_repository(folder / "user", files)
        git(folder, "clone", "-q", "--bare", str(folder / "user"), str(folder / "bare"))
        return folder

    def url(self, ref: str | None = None) -> RepositoryUrl:
        """Return its URL."""
        return parse_repository(f"git+file://{self.bare}{'' if ref is None else f'#{ref}'}")

    def machine(self, name: str, **variables: str) -> Repositories:
        """Return the repositories of a machine with a data folder of its own."""
        return Repositories(self.folder / name, {**self.environment, **variables})

    def refs(self, begin: str = "refs/isthmus") -> dict[str, str]:
        """Return the refs of the bare repository."""
        listed = git(self.bare, "for-each-ref", "--format=%(refname) %(objectname)", begin).splitlines()
        return {name: value for name, _, value in (line.partition(" ") for line in listed)}
