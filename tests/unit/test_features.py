"""The page of features: each row names tests that exist, and each "no" one that fails once it is a yes."""

import re
from pathlib import Path

import pytest

from isthmus.a2a import TelemetryOptions
from isthmus.cli.main import COMMANDS
from isthmus.models.endpoint.providers import PREFIXED

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "features.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")][
    1:
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_each_feature_names_tests_that_exist(row: list[str]) -> None:
    tests = re.findall(r"`(tests/[^`]+)`", row[-1])
    assert tests
    for path, _, name in (test.partition("::") for test in tests):
        source = (ROOT / path).read_text("utf-8")
        assert not name or re.search(rf"^(?:async )?def {name}\b", source, re.MULTILINE), f"{path} has no {name}"
    if re.match(r"no\b", row[1]):
        assert all("::" in test for test in tests), "a no is held by a test of its own"


def test_no_action_for_a_ci_service_is_published() -> None:
    assert not [name for name in ("action.yml", "action.yaml") if (ROOT / name).exists()]


def test_no_server_sends_telemetry_by_itself() -> None:
    assert not TelemetryOptions().otel


def test_providers_are_used_with_keys_alone() -> None:
    assert all(provider.secret_variables for provider in PREFIXED)
    assert "login" not in COMMANDS
