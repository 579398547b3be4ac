"""The line in which a companion or a bridge reports that it is ready."""

import asyncio
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.options import CompanionOptions
from isthmus.programs.companion.serving_editor import serve_editor
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_the_name_of_an_ide_does_nothing_to_the_terminal(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    editor = HeadlessEditor((str(workspace),))
    options = CompanionOptions((str(workspace),))
    serving = asyncio.create_task(serve_editor(editor, "Evil\x1b[2J\nIDE, bridged", options, as_json=False))
    printed: list[str] = []

    def is_ready() -> bool:
        printed.append(capsys.readouterr().out)
        return "".join(printed).endswith("\n")

    await eventually_async(is_ready, what="the line")
    editor.quit()
    await asyncio.wait_for(serving, 30)
    line = "".join(printed)
    assert "(Evil\u241b[2J\u240aIDE, bridged, " in line
    assert line.count("\n") == 1
    assert capsys.readouterr().err == "isthmus: Isthmus (headless) has quit, and the companion with it\n"
