"""Gives editors on a loaded machine the time that they need.

The product goes on with what it knew last, or without an answer, when an editor does not tell its files or diagnostics
within a second: a test that looks once would see that. What happens when such a time is up is shown by tests that set
it themselves.
"""

import pytest

from isthmus.ide.limits import CompanionLimits, ReviewLimits

SECONDS = 60.0
SHORT = (
    "isthmus.editors.neovim.editor._SNAPSHOT_SECONDS",
    "isthmus.editors.plugin.editor.SNAPSHOT_SECONDS",
)
"""How long the product waits for an editor, where it goes on without an answer."""
PATIENT_LIMITS = CompanionLimits(diagnostics_seconds=SECONDS, reviews=ReviewLimits(shutdown_seconds=SECONDS))
"""The same of a companion."""


def lengthen_editor_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer in this process until the end of the test; a program that it starts is as it is."""
    for name in SHORT:
        monkeypatch.setattr(name, SECONDS)
