"""The lists of failures in the official kits: a run is compared with them, and each entry is explained."""

from pathlib import Path

import pytest

from conformance_a2a import KitError, check_out, read_report
from known_failures import differences, known_failures

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "conformance.md"


def test_a_run_that_fails_as_it_is_known_to_differs_in_nothing() -> None:
    assert differences({"a": 1, "b": 3, "c": 0}, {"a": 1, "b": 3}) == []


def test_an_unlisted_failure_and_a_listed_one_that_passes_both_differ() -> None:
    found = differences({"new": 1, "more": 2, "fewer": 1}, {"gone": 1, "more": 1, "fewer": 2})
    assert [line.partition(",")[0] for line in found] == [
        "fewer: 1 failed",
        "gone: 0 failed",
        "more: 2 failed",
        "new: 1 failed",
    ]


@pytest.mark.parametrize("kit", ["mcp", "a2a"])
def test_each_known_failure_is_explained_in_the_documentation(kit: str) -> None:
    explained = DOCUMENT.read_text("utf-8")
    names = [name for suite in known_failures(kit).values() for name in suite]
    assert [name for name in names if f"`{name}`" not in explained] == []


def test_a_report_counts_what_failed_or_broke_with_its_reason() -> None:
    outcome = read_report(
        '<testsuites><testsuite><testcase classname="tests.a.test_one" name="test_x"/>'
        '<testcase classname="tests.a.test_one" name="test_y[1]"><failure message="no"/></testcase>'
        '<testcase classname="tests.b.test_two.TestIt" name="test_z"><error message="broken"/></testcase>'
        '<testcase classname="tests.b.test_two" name="test_s"><skipped message="later"/></testcase>'
        "</testsuite></testsuites>"
    )
    assert (outcome.passed, outcome.skipped) == (1, 1)
    assert outcome.failed == {"test_one::test_y[1]": "no", "TestIt::test_z": "broken"}


def test_a_folder_that_is_no_clone_of_the_kit_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(KitError, match=r"git clone of https://github\.com/a2aproject/a2a-tck"):
        check_out(tmp_path, "1.0", tmp_path)
