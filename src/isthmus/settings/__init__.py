"""Gemini CLI's settings files, with our own key ``isthmus`` in them; who may set what is in ``keys``."""

from isthmus.settings.loading import Settings, load_settings, load_tool_rules
from isthmus.settings.read_only_tools import ReadOnlyTools
from isthmus.settings.sources import (
    MAXIMUM_BYTES,
    SettingsError,
    project_settings_path,
    settings_text,
    user_settings_path,
)

__all__ = [
    "MAXIMUM_BYTES",
    "ReadOnlyTools",
    "Settings",
    "SettingsError",
    "load_settings",
    "load_tool_rules",
    "project_settings_path",
    "settings_text",
    "user_settings_path",
]
