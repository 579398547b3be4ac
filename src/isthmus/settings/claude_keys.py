"""Table of the keys of Claude Code's settings files that are used. Their readers say what they mean."""

from enum import Enum


class ClaudeKey(Enum):
    """A key, by its name with dots between the names of objects."""

    HOOKS = "hooks"
    ALL_HOOKS_OFF = "disableAllHooks"
    PERMISSIONS = "permissions"
    """The object around the keys below."""
    DENY = "permissions.deny"
    ASK = "permissions.ask"
    ALLOW = "permissions.allow"
    FOLDERS = "permissions.additionalDirectories"
    MODE = "permissions.defaultMode"
    BYPASS_OFF = "permissions.disableBypassPermissionsMode"
    MANAGED_RULES_ONLY = "allowManagedPermissionRulesOnly"
    """Key of the machine's files alone."""
