"""The companion protocols that IDEs are found by."""

from isthmus.ide.claude.protocol import CLAUDE
from isthmus.ide.gemini.protocol import GEMINI

IDE_PROTOCOLS = (CLAUDE, GEMINI)
"""Protocols by preference, which decides if IDEs of several are as near."""
