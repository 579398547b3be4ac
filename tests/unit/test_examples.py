"""Examples where CONTRIBUTING tells to copy them: the rules of who imports whom hold for them there, too."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = {
    "examples/editors/minimal_editor.py": "src/isthmus/editors/minimal_editor.py",
    "examples/protocols/json_lines": "src/isthmus/ide/json_lines",
    "examples/providers/mistral.py": "src/isthmus/models/mistral.py",
    "examples/slash_commands/folder.py": "src/isthmus/agent/commands/builtin/folder.py",
    "examples/tools/count_lines.py": "src/isthmus/tools/reading/count_lines.py",
}


@pytest.mark.slow
def test_examples_break_no_rule_of_imports_in_their_place(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src/isthmus", tmp_path / "src/isthmus", ignore=shutil.ignore_patterns("__pycache__", "ui"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for example, place in PLACES.items():
        copy = shutil.copytree if (ROOT / example).is_dir() else shutil.copy
        copy(ROOT / example, tmp_path / place)
    for module in (tmp_path / "src/isthmus/ide/json_lines").glob("*.py"):
        text = module.read_text("utf-8").replace("protocols.json_lines", "isthmus.ide.json_lines")
        module.write_text(text, "utf-8")
    checked = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
