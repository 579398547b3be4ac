"""Gemini CLI's settings files, with a key ``isthmus`` of our own; ``keys`` is the table of who may set what."""

from isthmus.settings.loading import load_folder_rules, load_settings
from isthmus.settings.rules.rules import FolderRules, ReadOnlyTools
from isthmus.settings.settings import Settings
from isthmus.settings.settings_file import MAXIMUM_BYTES, SettingsError, settings_text
from isthmus.settings.sources import project_settings_path, user_settings_path

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
