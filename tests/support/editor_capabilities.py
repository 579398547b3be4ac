"""Expectations of the contract suite for an editor that lacks a capability: it reports that."""

import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from isthmus.ide.editor import Capability, NotAvailableError
from isthmus.ide.reviews.review import DiffReview
from support.editor_driver import EditorDriver


async def refuses(driver: EditorDriver, capability: Capability) -> None:
    """Assert that an editor without a capability reports that, with the reason, and does nothing."""
    editor, path = driver.editor, "/nowhere"
    calls: dict[Capability, Callable[[], Awaitable[object]]] = {
        Capability.DIFF: lambda: editor.open_diff(DiffReview("r", path, "new", "owner", "An agent")),
        Capability.OPEN: lambda: editor.open_file(path),
        Capability.CLOSE: lambda: editor.close_file(path),
        Capability.TEXT: lambda: editor.text(path),
        Capability.DIRTY: lambda: editor.is_dirty(path),
        Capability.DIAGNOSTICS: lambda: editor.diagnostics(path),
        Capability.SAVE: lambda: editor.save(path),
        Capability.MESSAGE: lambda: editor.show_message("text"),
        Capability.CONFIRM: lambda: editor.confirm("title", "text"),
        Capability.EXECUTE: lambda: editor.execute_code("1"),
        Capability.RELOAD: lambda: editor.reload([path]),
        Capability.TERMINAL: lambda: editor.set_terminal_environment({"NAME": "value"}),
    }
    if capability is Capability.SELECTION:
        assert all((file.cursor, file.selection) == (None, None) for file in await editor.open_files())
        return
    with pytest.raises(NotAvailableError) as refused:
        await calls[capability]()
    assert str(refused.value) == f"not available in {editor.identity.display_name}: {editor.unavailable[capability]}"


def needs(
    *capabilities: Capability,
) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[..., Coroutine[Any, Any, None]]]:
    """Return a mark: on an editor that lacks one of these, the test shows only that the editor refuses."""

    def decorate(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., Coroutine[Any, Any, None]]:
        @functools.wraps(test)
        async def run(driver: EditorDriver, **fixtures: Any) -> None:
            missing = [capability for capability in capabilities if capability in driver.editor.unavailable]
            for capability in missing:
                await refuses(driver, capability)
            if not missing:
                await test(driver=driver, **fixtures)

        return run

    return decorate
