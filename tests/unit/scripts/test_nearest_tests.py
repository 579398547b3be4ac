"""The rule by which tests belong to a module: by path, by imports, by package. All modules of the program have some."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from nearest_tests import ROOT, Checkout, Nearness, imports_of, main

FILES = {
    "src/isthmus/__init__.py": "",
    "src/isthmus/low.py": "import os\n",
    "src/isthmus/alone.py": "",
    "src/isthmus/room/__init__.py": "",
    "src/isthmus/room/high.py": "from isthmus import low\n",
    "src/isthmus/room/higher.py": "",
    "src/isthmus/room/high_up.py": "",
    "src/isthmus/room/inner/deep.py": "",
    "src/isthmus/room/inner/quiet.py": "",
    "src/isthmus/empty/far.py": "",
    "tests/support/helper.py": "from isthmus.room.higher import x\n",
    "tests/support/low.py": "",
    "tests/unit/test_low.py": "",
    "tests/unit/test_deep.py": "",
    "tests/unit/test_low_values.py": "from isthmus import low\n",
    "tests/unit/room/test_high.py": "",
    "tests/unit/room/test_high_again.py": "",
    "tests/unit/room/test_high_up_there.py": "",
    "tests/unit/room/test_deep.py": "",
    "tests/unit/other/test_high.py": "from isthmus.room.high import x\n",
    "tests/contract/test_helped.py": "from support.helper import x\n",
}


def write(root: Path, files: Mapping[str, str] = FILES) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


def nearest(root: Path, module: str) -> Sequence[tuple[str, Nearness]]:
    found = Checkout(root).nearest(root / "src/isthmus" / module)
    return [(str(test.relative_to(root / "tests")), way) for way, test in found]


def test_a_test_with_the_path_of_a_module_comes_before_one_that_imports_it(root: Path) -> None:
    assert nearest(root, "low.py") == [("unit/test_low.py", Nearness.PATH), ("unit/test_low_values.py", Nearness.PATH)]
    assert nearest(root, "room/high.py") == [
        ("unit/room/test_high.py", Nearness.PATH),
        ("unit/room/test_high_again.py", Nearness.PATH),
        ("unit/other/test_high.py", Nearness.IMPORT),
    ]


def test_a_test_belongs_to_the_module_with_the_longest_name_in_its_own(root: Path) -> None:
    assert nearest(root, "room/high_up.py") == [("unit/room/test_high_up_there.py", Nearness.PATH)]


def test_a_module_in_a_folder_below_its_test_is_found_by_its_name(root: Path) -> None:
    assert nearest(root, "room/inner/deep.py") == [("unit/room/test_deep.py", Nearness.PATH)]


def test_a_test_that_imports_a_module_through_a_helper_belongs_to_it(root: Path) -> None:
    assert nearest(root, "room/higher.py") == [("contract/test_helped.py", Nearness.IMPORT)]


def test_a_module_without_tests_of_its_own_has_those_of_its_package(root: Path) -> None:
    found = nearest(root, "room/inner/quiet.py")
    assert found[0][0] == "unit/room/test_deep.py"  # inner has none, so the package above counts
    assert {way for _, way in found} == {Nearness.PACKAGE}


@pytest.mark.parametrize("module", ["alone.py", "empty/far.py"])
def test_a_module_that_nothing_leads_to_has_no_tests(root: Path, module: str) -> None:
    assert nearest(root, module) == []
    assert not Checkout(root).has_tests(root / "src/isthmus" / module)


def test_tests_are_found_again_after_a_module_and_its_test_have_moved(root: Path) -> None:
    for old, new in {"src/isthmus/room": "src/isthmus/hall", "tests/unit/room": "tests/unit/hall"}.items():
        (root / old).rename(root / new)
    assert nearest(root, "hall/high.py")[0] == ("unit/hall/test_high.py", Nearness.PATH)


def test_the_tests_of_a_module_are_printed_and_a_module_without_any_is_an_error(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(root / "src/isthmus/room/higher.py")], root) == 0
    assert capsys.readouterr().out == (
        "1 test file belongs to src/isthmus/room/higher.py:\n  tests/contract/test_helped.py  (imports it)\n"
    )
    assert main([str(root / "src/isthmus/alone.py")], root) == 1
    assert "none; add one with its path" in capsys.readouterr().out
    assert main([str(root / "src/isthmus/missing.py")], root) == 1
    assert "is not a file below" in capsys.readouterr().err


def test_imports_are_found_in_each_form_and_in_functions() -> None:
    text = "import a.b\nfrom c import d, e as f\nfrom g import (\n  h,\n  i,\n)\ndef j():\n    from k import l\n"
    assert {"a.b", "c", "c.d", "c.e", "g", "g.h", "g.i", "k", "k.l"} <= set(imports_of(text))


@pytest.mark.slow
def test_each_module_of_the_program_has_tests() -> None:
    checkout = Checkout(ROOT)
    modules = sorted((ROOT / "src/isthmus").rglob("*.py"))
    assert len(modules) > 1000
    assert [str(module.relative_to(ROOT)) for module in modules if not checkout.has_tests(module)] == []
