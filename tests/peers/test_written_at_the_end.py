"""Questions about what agents wrote that come while the companion ends."""

import asyncio
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.errors import IsthmusError
from isthmus.ide.written_changes.ledger import ChangeSelection
from support.editing import make_file
from support.written_changes import recording

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("turns_of_the_loop", [0, 1, 2, 4, 8, 16, 64])
async def test_they_are_answered_or_refused_and_open_no_store_again(workspace: Path, turns_of_the_loop: int) -> None:
    path = make_file(workspace, "a.txt", "one\n")
    asking: list[asyncio.Task[object]] = []
    async with recording(HeadlessEditor((str(workspace),)), workspace) as written:
        make_file(workspace, "a.txt", "two\n")
        for _ in range(10):
            asking.append(asyncio.create_task(written.listing()))
            asking.append(asyncio.create_task(written.file_diff(path, None)))
            asking.append(asyncio.create_task(written.keep(ChangeSelection(path))))
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
    answers = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 30)
    assert [answer for answer in answers if not isinstance(answer, dict | IsthmusError)] == []
    assert (await written.listing())["files"] == []
