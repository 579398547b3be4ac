"""Kills the companion, the bridge, and their editors, at any moment of reviews, with agents of both protocols.

No decision is made twice or for another agent, only agents write files, typed text is kept or still in the editor,
files of dead companions are removed, and the next companion is the same to its agents.
"""

import os
import random
import time
from pathlib import Path

import pytest

from chaos.companion_crash_run import CompanionCrashRun
from chaos.companion_setups import BridgeSetup, HeadlessSetup, NeovimSetup
from support.extended import first_of
from support.isolation import IsolatedFolders

pytestmark = pytest.mark.anyio

IS_LONG = "CHAOS_KILLS" in os.environ
KILLS = int(os.environ.get("CHAOS_KILLS", "4"))
"""Number of faults in each setup."""
SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))

KINDS = {"neovim": NeovimSetup, "headless": HeadlessSetup, "bridge": BridgeSetup}


@pytest.mark.timeout(3600 if IS_LONG else 300)
@pytest.mark.parametrize("kind", first_of(KINDS.values(), ids=KINDS))
async def test_reviews_come_to_one_end_whatever_dies_at_any_moment(
    kind: type[HeadlessSetup], workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    print(f"CHAOS_SEED={SEED} CHAOS_KILLS={KILLS}")
    began = time.monotonic()
    run = CompanionCrashRun(kind(workspace, isolated_folders), SEED, KILLS)
    try:
        await run.play()
    except (AssertionError, TimeoutError) as error:
        raise AssertionError(f"{error}\nCHAOS_SEED={SEED}\n{run.log()}") from error
    print(f"{run.faults.total()} faults, {time.monotonic() - began:.0f} s: {dict(run.faults)}")
