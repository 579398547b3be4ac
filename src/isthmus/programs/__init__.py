"""Programs, each put together in a room of its own. The commands import what they need from here."""
