"""What the tests of contracts share."""

import pytest

from support.patience import be_patient


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors have time to answer."""
    be_patient(monkeypatch)
