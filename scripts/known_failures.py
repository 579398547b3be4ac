"""Known failures in the official test kits, and their comparison with the failures of a run.

The list is scripts/conformance/known_failures.toml; docs/reference/conformance.md has the reasons.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).resolve().parent / "conformance" / "known_failures.toml"


def known_failures(kit: str) -> dict[str, dict[str, int]]:
    """Return the number of failures by name for each suite of a kit (`mcp`, `a2a`). Raises KeyError for another kit."""
    suites: dict[str, dict[str, int]] = tomllib.loads(FILE.read_text("utf-8"))[kit]
    return suites


def differences(failed: Mapping[str, int], known: Mapping[str, int]) -> list[str]:
    """Return a sentence for each name that fails more or less often than known, in the order of the names."""
    found: list[str] = []
    for name in sorted(failed.keys() | known.keys()):
        now, expected = failed.get(name, 0), known.get(name, 0)
        if now > expected:
            found.append(
                f"{name}: {now} failed, {expected} known: fix it, or list it in {FILE.name} and document the reason"
            )
        elif now < expected:
            found.append(
                f"{name}: {now} failed, {expected} known: remove it from {FILE.name} and from the documentation"
            )
    return found
