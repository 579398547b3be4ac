"""Limits with which editors on a loaded machine have the time that they need.

The product goes on with what it knew last, or without an answer, when an editor does not tell its files or diagnostics
within a second: a test that looks once would see that. What happens when such a time is up is shown by tests that set
it themselves.
"""

from isthmus.editors.neovim.editor import NeovimLimits
from isthmus.editors.plugin.editor import PluginLimits
from isthmus.ide.limits import CompanionLimits, ReviewLimits

SECONDS = 60.0
PATIENT_LIMITS = CompanionLimits(diagnostics_seconds=SECONDS, reviews=ReviewLimits(shutdown_seconds=SECONDS))
PATIENT_NEOVIM = NeovimLimits(snapshot_seconds=SECONDS)
PATIENT_PLUGIN = PluginLimits(start_seconds=SECONDS, snapshot_seconds=SECONDS)
