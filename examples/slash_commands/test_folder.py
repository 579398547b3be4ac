import pytest

from isthmus.events import TaskState
from support.command_harness import OpenHarness

pytestmark = pytest.mark.anyio


async def test_the_number_of_entries_is_said(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        (harness.workspace / "a.txt").touch()
        ran = await harness.run("/folder")
        assert (ran.state, ran.text) == (TaskState.COMPLETED, f"{harness.workspace} has 1 entries.")
