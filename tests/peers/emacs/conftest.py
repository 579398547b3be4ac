"""An Emacs for each test, with the companion's side of its plugin in the test's process."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from support.emacs import AT_ONCE, EmacsDriver, emacs_driver
from support.emacs_layers import PLAIN, Scene, review_scene
from support.neovim import Heard, hearing


@pytest.fixture
def configuration() -> str:
    """Return Lisp of the user's init file, which sets when reviews take keys."""
    return AT_ONCE


@pytest.fixture
async def driver(workspace: Path, configuration: str) -> AsyncGenerator[EmacsDriver]:
    """Start Emacs in an empty workspace, with a user in front of it."""
    async with emacs_driver(workspace, reviews=configuration) as driver:
        yield driver


@pytest.fixture
async def heard(driver: EmacsDriver) -> AsyncGenerator[Heard]:
    """Collect the events of the editor."""
    async with hearing(driver.editor) as heard:
        yield heard


@pytest.fixture
def layer() -> str:
    """Return the layer of keys of a scene; tests of several name them."""
    return PLAIN


@pytest.fixture
async def scene(layer: str, workspace: Path) -> AsyncGenerator[Scene]:
    """Start Emacs with a layer of keys and a review on the screen."""
    async with review_scene(workspace, layer) as scene:
        yield scene
