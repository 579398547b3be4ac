"""The page of features: each one that is there names the tests that show it, and they exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_feature_that_is_there_names_its_tests() -> None:
    page = (ROOT / "docs/reference/features.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| (.+?) \| (.+?) \| ?(.*?) ?\|$", page)[1:]
    assert len(rows) > 30
    for feature, answer, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        assert named or answer.startswith("no"), feature
        assert all((ROOT / name).is_file() for name in named), feature
