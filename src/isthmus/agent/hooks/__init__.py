"""Hooks of Gemini CLI and Claude Code: forms and verdicts are pure, tool_hooks and hooked_model run them by a port."""
