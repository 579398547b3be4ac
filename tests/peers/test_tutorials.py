"""The tutorials, as written: what a page says is typed into real shells, and what it shows must be there.

Only the environment is the test's: a repository that git finds at the page's address, a `venv` whose `pip` installs the
program of this checkout without a registry, another port and home folder. What pages may say is in
`support/tutorial_page.py`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.isolation import IsolatedFolders
from support.ports import free_port
from support.programs import require
from support.tutorial_page import AnyStep, prerequisites, read_page, section
from support.tutorial_reader import PROMPTS, TutorialReader

if TYPE_CHECKING:
    from collections.abc import Iterator

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(page.name for page in TUTORIALS.glob("*.md"))

PYTHON = f"""#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {sys.executable} "$@"
mkdir -p "$3/bin" && cp "$0.pip" "$3/bin/pip"
"""
PIP = f"""#!/bin/sh
[ "$1" = install ] && grep -q '^name = "isthmus"' "$2/pyproject.toml" || exit 2
cat > "$(dirname "$0")/isthmus" <<'END'
#!{sys.executable}
import sys
from isthmus.__main__ import main
sys.exit(main())
END
chmod +x "$(dirname "$0")/isthmus"
"""
VIMRC = "let g:isthmus_review = {'pause': 0, 'reading': 0}\nlet g:loaded_python3_provider = 0\n"
"""Reviews take keys at once: the reader here sees a review when it is there, and types nothing by mistake."""


def steps_of(name: str) -> list[AnyStep]:
    """Return the steps of a page, after those of the sections that it says it needs."""
    text = (TUTORIALS / name).read_text(encoding="utf-8")
    needed = [
        step
        for page, anchor in prerequisites(text)
        for step in read_page(page, section((TUTORIALS / page).read_text(encoding="utf-8"), anchor))
    ]
    return [*needed, *read_page(name, text)]


@pytest.fixture
def environment(isolated_folders: IsolatedFolders, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user who has git, Neovim and Python, and no Isthmus, key or model server yet."""
    home, programs = isolated_folders.home, tmp_path / "programs"
    programs.mkdir()
    for name, text in (("python3", PYTHON), ("python3.pip", PIP)):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    (programs / "nvim").symlink_to(require("nvim"))
    (home / ".config" / "nvim").mkdir(parents=True)
    (home / ".config" / "nvim" / "init.vim").write_text(VIMRC, encoding="utf-8")
    (home / ".bashrc").write_text(PROMPTS, encoding="utf-8")
    path = [folder for folder in os.environ["PATH"].split(os.pathsep) if not (Path(folder) / "isthmus").exists()]
    return {
        **os.environ,
        "PATH": os.pathsep.join((str(programs), *path)),
        "SHELL": str(require("bash")),
        "OLLAMA_HOST": f"127.0.0.1:{free_port()}",
    }


@pytest.fixture
def repository(isolated_folders: IsolatedFolders) -> None:
    """Make the repository that the pages clone; it has what pip looks at first."""
    folder = isolated_folders.home / "URL-OF-THIS-REPOSITORY"
    folder.mkdir()
    shutil.copy(TUTORIALS.parents[1] / "pyproject.toml", folder)
    for arguments in (
        ("init", "--quiet"),
        ("add", "."),
        ("-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "--message", "All"),
    ):
        subprocess.run([require("git"), *arguments], cwd=folder, check=True)


@pytest.fixture
def bystander(tmp_path: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a process that looks like another server of this machine's; no page may end it."""
    arguments = ["isthmus serve --port 80 --token-file token", "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(arguments, executable=sys.executable) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PAGES)
def test_a_tutorial_is_right_as_written(
    name: str,
    isolated_folders: IsolatedFolders,
    environment: dict[str, str],
    repository: None,
    bystander: "subprocess.Popen[bytes]",
) -> None:
    home = isolated_folders.home
    reader = TutorialReader(home, environment, {"8080": str(free_port()), "/home/you": str(home)})
    steps = steps_of(name)
    with reader.reading():
        reader.follow(steps)
    assert bystander.poll() is None, f"{name} ended a server of somebody else's"
