"""What the tests of contracts share."""

import pytest

from support.patience import give_editors_time


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors have time to answer."""
    give_editors_time(monkeypatch)
