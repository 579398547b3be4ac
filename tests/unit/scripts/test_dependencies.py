import inspect
import tomllib
from pathlib import Path

import pytest
import uvicorn.protocols.http.auto as chosen_by_uvicorn
from packaging.requirements import Requirement

from dependencies import ROOT, problems

PROJECT = """
[project]
dependencies = ["alpha>=2,<3"]
[dependency-groups]
build = ["beta>=1"]
dev = ["gamma==4"]
unit-tests = []
"""
NOTICES = "| alpha | 2.1 | MIT |\n"
RUN = "alpha==2.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via isthmus (pyproject.toml)\n"
BETA = "beta==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:cc\n"
GAMMA = "gamma==4 --hash=sha256:dd\n"


def checkout(folder: Path, run: str = RUN, dev: str = RUN + BETA + GAMMA, notices: str = NOTICES) -> Path:
    (folder / "requirements").mkdir()
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "requirements" / "run.txt").write_text(run, encoding="utf-8")
    (folder / "requirements" / "dev.txt").write_text(dev, encoding="utf-8")
    (folder / "THIRD_PARTY_NOTICES.md").write_text(notices, encoding="utf-8")
    return folder


def test_locked_dependencies_that_fit_have_no_problem(tmp_path: Path) -> None:
    assert list(problems(checkout(tmp_path))) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"run": RUN.replace("2.1", "3.0")}, "pyproject.toml asks for alpha<3,>=2, and requirements/run.txt has 3.0"),
        ({"dev": RUN + BETA}, "pyproject.toml asks for gamma==4, and requirements/dev.txt does not have it"),
        ({"run": "alpha==2.1\n"}, "run.txt does not lock alpha by version and hash"),
        ({"run": "alpha>=2.1 --hash=sha256:aa\n"}, "run.txt does not lock alpha by version and hash"),
        ({"run": "--index-url https://pypi.example/simple\n" + RUN}, "run.txt holds an address or an option of pip"),
        ({"notices": ""}, "THIRD_PARTY_NOTICES.md does not name alpha 2.1"),
    ],
)
def test_a_problem_of_the_locked_dependencies_is_said(tmp_path: Path, changed: dict[str, str], problem: str) -> None:
    assert any(each.startswith(problem) for each in problems(checkout(tmp_path, **changed)))


@pytest.mark.slow
def test_the_locked_dependencies_of_this_checkout_are_in_order() -> None:
    assert list(problems(ROOT)) == []


def test_every_package_of_an_extra_is_used_where_it_is_installed() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    used = "\n".join([*sources, inspect.getsource(chosen_by_uvicorn)])
    names = [Requirement(each).name for packages in extras.values() for each in packages]
    modules = {"pyjwt": "import jwt"}  # packages whose modules have other names
    assert [name for name in names if modules.get(name, name.partition("-")[0]) not in used] == []
