"""Limits of one attached plugin: its messages, and how long it may take for each answer."""

from isthmus.editors.plugin.connection import PipeLimits
from isthmus.record import record


@record(kw_only=True)
class PluginLimits(PipeLimits):
    """Limits of one attached plugin."""

    start_seconds: float = 10.0
    """Maximum time until it has initialized."""
    snapshot_seconds: float = 1.0
    """Maximum wait for folders, files and diagnostics, after which the last known ones are used."""
    late_snapshot_seconds: float = 30.0
    """Maximum time in which late folders and files are still taken."""
    command_seconds: float = 10.0
    """Maximum wait for any other answer."""
    confirm_seconds: float = 25 * 3600.0
    """Maximum wait for the user's answer to a question; each question has a shorter one of its own."""
    execute_seconds: float = 3600.0
    """Maximum time for code to run."""
    tool_seconds: float = 60.0
    """Maximum time for a tool of the plugin to run."""
    close_seconds: float = 2.0
    """Maximum wait for the views to close at the end."""
