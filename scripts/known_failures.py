"""Known failures in the official test kits, compared with those of a run.

The list is scripts/conformance/known_failures.toml; docs/reference/conformance.md has the reasons.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).resolve().parent / "conformance" / "known_failures.toml"


def known_failures(kit: str) -> dict[str, dict[str, int]]:
    """Return for each suite of a kit (`mcp`, `a2a`) how often which names fail. Raises KeyError for another kit."""
    suites: dict[str, dict[str, int]] = tomllib.loads(FILE.read_text("utf-8"))[kit]
    return suites


def differences(failed: Mapping[str, int], known: Mapping[str, int]) -> list[str]:
    """Return a sentence for each name that fails otherwise than it is known to, in the order of the names."""
    found: list[str] = []
    for name in sorted(failed.keys() | known.keys()):
        now, expected = failed.get(name, 0), known.get(name, 0)
        if now > expected:
            found.append(
                f"{name}: {now} failed, {expected} known to: mend it, or list it in {FILE.name} with its reason"
            )
        elif now < expected:
            found.append(
                f"{name}: {now} failed, {expected} known to: take it out of {FILE.name} and of the documentation"
            )
    return found
