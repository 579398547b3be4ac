"""What the tests of contracts share."""

import pytest

from support.editor_deadlines import lengthen_editor_deadlines


@pytest.fixture(autouse=True)
def editor_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors have time to answer."""
    lengthen_editor_deadlines(monkeypatch)
