"""A Neovim for each test, with a companion's editor attached to it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, NeovimLimits, attach
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import Heard, RunningNeovim, hearing, running_neovim


@pytest.fixture
async def neovim(workspace: Path) -> AsyncGenerator[RunningNeovim]:
    """Start Neovim in an empty workspace."""
    async with running_neovim(workspace) as running:
        yield running


@pytest.fixture
def limits() -> NeovimLimits:
    """Return the limits of the editor."""
    return PATIENT_NEOVIM


@pytest.fixture
async def editor(neovim: RunningNeovim, limits: NeovimLimits) -> AsyncGenerator[NeovimEditor]:
    """Attach the companion's editor to it."""
    attached = await attach(neovim.address, limits)
    yield attached
    await attached.aclose()


@pytest.fixture
async def heard(editor: NeovimEditor) -> AsyncGenerator[Heard]:
    """Collect the events of the editor."""
    async with hearing(editor) as heard:
        yield heard
