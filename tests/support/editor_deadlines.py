"""Timeouts that give editors on a loaded machine enough time.

Isthmus continues with its last state, or without an answer, if an editor does not report its files or diagnostics
within a second: a test that looks once would see that. Tests of these timeouts set their own.
"""

from isthmus.editors.neovim.editor import NeovimLimits
from isthmus.editors.plugin.limits import PluginLimits
from isthmus.ide.options import CompanionLimits, ReviewLimits

SECONDS = 60.0
PATIENT_LIMITS = CompanionLimits(
    diagnostics_seconds=SECONDS,
    settle_diagnostics_seconds=SECONDS,
    empty_diagnostics_seconds=SECONDS / 6,
    reviews=ReviewLimits(shutdown_seconds=SECONDS),
)
PATIENT_NEOVIM = NeovimLimits(snapshot_seconds=SECONDS)
PATIENT_PLUGIN = PluginLimits(start_seconds=SECONDS, snapshot_seconds=SECONDS)
