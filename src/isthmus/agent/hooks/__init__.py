"""Hooks of Gemini CLI and Claude Code: dialects and verdicts are pure, tool_hooks runs them through a port."""
