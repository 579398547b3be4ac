"""The order in which make quick runs tests: those nearest to a change first."""

from pathlib import Path

import quick_tests


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def project(root: Path) -> None:
    write(
        root,
        {
            "src/isthmus/__init__.py": "",
            "src/isthmus/low.py": "import os\n",
            "src/isthmus/room/__init__.py": "",
            "src/isthmus/room/high.py": "from isthmus import (\n    low,\n    other,\n)\n",
            "src/isthmus/other.py": "def late():\n    from isthmus.low import x\n",
            "src/isthmus/apart.py": "text = 'from isthmus import nothing'\n",
            "tests/support/helper.py": "from isthmus.room.high import x\n",
            "tests/unit/test_low.py": "import isthmus.low\n",
            "tests/unit/test_high.py": "from isthmus.room import high\n",
            "tests/contract/test_far.py": "from support.helper import x\n",
            "tests/unit/test_apart.py": "from isthmus.apart import text\n",
        },
    )


def names(root: Path, *changed: str) -> list[str]:
    return [path.name for path in quick_tests.ordered_tests(root, [root / name for name in changed])]


def test_tests_run_by_the_number_of_imports_that_lead_to_a_change(tmp_path: Path) -> None:
    project(tmp_path)
    order = names(tmp_path, "src/isthmus/low.py")
    assert order[:3] == ["test_low.py", "test_high.py", "test_far.py"]
    assert order[3] == "test_apart.py"
    assert names(tmp_path, "src/isthmus/apart.py")[0] == "test_apart.py"
    assert names(tmp_path, "tests/contract/test_far.py")[0] == "test_far.py"
    assert names(tmp_path, "tests/support/helper.py")[0] == "test_far.py"
    assert len(names(tmp_path)) == 4


def test_batches_keep_the_order_and_lose_nothing(tmp_path: Path) -> None:
    files = [tmp_path / f"test_{number}.py" for number in range(30)]
    for number, path in enumerate(files):
        path.write_bytes(b"x" * (number * 997))
    groups = list(quick_tests.batches(files))
    assert [path for group in groups for path in group] == files
    assert all(sum(path.stat().st_size for path in group[:-1]) < quick_tests.BATCH_BYTES for group in groups)


def test_the_order_of_this_repository_begins_with_the_tests_of_a_changed_module() -> None:
    order = quick_tests.ordered_tests(quick_tests.ROOT, [quick_tests.ROOT / "src/isthmus/settings/env_files.py"])
    near = [path.name for path in order[:8]]
    assert "test_keys.py" in near or "test_env_files.py" in near or "test_project_items.py" in near
    assert len(order) > 300
