"""The workbench in packages: built without Node from a source distribution, and named where it is missing."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src" / "isthmus" / "web" / "ui"
WITHOUT_NODE = {**os.environ, "PATH": "/usr/bin:/bin"}


def build(folder: Path, kind: str, to: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(to)],
        cwd=folder, env=WITHOUT_NODE, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip


@pytest.mark.extended
@pytest.mark.slow
def test_a_wheel_from_a_source_distribution_has_the_page_without_node(tmp_path: Path) -> None:
    made = build(ROOT, "sdist", tmp_path)
    assert made.returncode == 0, made.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    subprocess.run(["tar", "xzf", str(archive), "-C", str(tmp_path)], check=True)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    made = build(folder, "wheel", tmp_path)
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        found = {name: packed.read(name) for name in packed.namelist() if name.startswith("isthmus/web/ui/")}
    expected = {
        f"isthmus/web/ui/{path.relative_to(PAGE)}": path.read_bytes() for path in PAGE.rglob("*") if path.is_file()
    }
    assert found == expected
    assert len(found) > 3


def test_a_checkout_without_the_page_and_without_node_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "packaging").mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "packaging/public.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "src" / "isthmus").mkdir(parents=True)
    (tmp_path / "src" / "isthmus" / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (tmp_path / "plugins").mkdir()
    made = build(tmp_path, "wheel", tmp_path / "dist")
    assert made.returncode != 0
    assert made.stderr.strip().splitlines()[-1].startswith("The page of the workbench is not built")
    assert "make frontend" in made.stderr
