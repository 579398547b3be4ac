"""The page of features: each names the tests that show that it is there, or is not, and they exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_feature_names_its_tests() -> None:
    page = (ROOT / "docs/reference/features.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| (.+?) \| (.+?) \| ?(.*?) ?\|$", page)[1:]
    assert len(rows) > 30
    for feature, _, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        assert named, feature
        assert all((ROOT / name).is_file() for name in named), feature


def test_there_is_no_action_for_a_ci_service() -> None:
    assert not [*ROOT.glob("action.y*ml")]


def test_no_module_sends_statistics_to_an_address_of_the_project() -> None:
    sent = re.compile(r"(?i)(analytics|posthog|sentry|segment\.io|telemetry\.[a-z]+\.(com|io|dev)|usage_statistics)")
    modules = [path for path in (ROOT / "src/isthmus").rglob("*.py") if "ui" not in path.parts]
    assert len(modules) > 500
    assert [str(path) for path in modules if sent.search(path.read_text("utf-8"))] == []
