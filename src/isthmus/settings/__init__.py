"""Gemini CLI's settings files, with our own key ``isthmus`` in them; who may set what is in ``keys``."""

from isthmus.settings.folder_rules import FolderRules
from isthmus.settings.loading import Settings, load_folder_rules, load_settings
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
    "FolderRules",
    "ReadOnlyTools",
    "Settings",
    "SettingsError",
    "load_folder_rules",
    "load_settings",
    "project_settings_path",
    "settings_text",
    "user_settings_path",
]
