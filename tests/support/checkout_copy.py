"""A copy of the checkout with a virtual environment of its own, in which a reader may change and install anything."""

import shutil
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("src", "tests", "scripts", "examples", "docs", "bench", "plugins", "deploy", "typings", "packaging")
FILES = (
    "pyproject.toml",
    "README.md",
    "README.zh-CN.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "hatch_build.py",
)
LEFT_OUT = shutil.ignore_patterns("node_modules", "__pycache__", "transcripts", "pictures", "*.png")
"""Ignores what no page needs and is most of the bytes."""
SCRIPT = '#!/bin/sh\nexec {python} -m {module} "$@"\n'
LINT_IMPORTS = "#!{python}\nfrom importlinter.cli import lint_imports_command\nlint_imports_command()\n"


def copy_checkout(target: Path) -> None:
    """Copy the checkout to ``target``, which must not exist, and make its ``.venv``.

    The environment sees the packages of the one in which this test runs, after the source of the copy.
    """
    for room in ROOMS:
        shutil.copytree(ROOT / room, target / room, ignore=LEFT_OUT)
    for name in FILES:
        shutil.copy(ROOT / name, target / name)
    environment = target / ".venv"
    venv.EnvBuilder(symlinks=True).create(environment)
    packages = sysconfig.get_path("purelib", vars={"base": str(environment)})
    paths = (target / "src", sysconfig.get_path("purelib"))
    (Path(packages) / "checkout.pth").write_text("".join(f"{path}\n" for path in paths), "utf-8")
    programs, python = environment / "bin", environment / "bin" / "python"
    texts = {name: SCRIPT.format(python=python, module=name) for name in ("isthmus", "pip")}
    texts["lint-imports"] = LINT_IMPORTS.format(python=python)
    for name, text in texts.items():
        (programs / name).write_text(text, "utf-8")
        (programs / name).chmod(0o755)
    (programs / "ruff").symlink_to(Path(sysconfig.get_path("scripts"), "ruff"))
