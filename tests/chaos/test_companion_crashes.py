"""Kills the companion, the bridge, and the editors they serve, at any moment of reviews, with agents of both protocols.

Nothing is decided twice or for another agent, no file is written but by an agent, what the user typed is kept or
still in the editor, dead ones' files are swept, and the next one is the same to its agents.
"""

import os
import random
import time
from pathlib import Path

import pytest

from chaos.companion_story import CompanionStory
from chaos.companion_world import BridgeWorld, HeadlessWorld, NeovimWorld
from support.isolation import IsolatedFolders

pytestmark = pytest.mark.anyio

IS_LONG = "CHAOS_KILLS" in os.environ
KILLS = int(os.environ.get("CHAOS_KILLS", "4"))
"""In each of the worlds."""
SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))


@pytest.mark.timeout(3600 if IS_LONG else 300)
@pytest.mark.parametrize("kind", [HeadlessWorld, NeovimWorld, BridgeWorld], ids=["headless", "neovim", "bridge"])
async def test_reviews_come_to_one_end_whatever_dies_at_any_moment(
    kind: type[HeadlessWorld], workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    print(f"CHAOS_SEED={SEED} CHAOS_KILLS={KILLS}")
    began = time.monotonic()
    story = CompanionStory(kind(workspace, isolated_folders), SEED, KILLS)
    try:
        await story.play()
    except (AssertionError, TimeoutError) as error:
        raise AssertionError(f"{error}\nCHAOS_SEED={SEED}\n{story.log()}") from error
    print(f"{story.blows.total()} blows, {time.monotonic() - began:.0f} s: {dict(story.blows)}")
