"""Declaration and context of a slash command."""
