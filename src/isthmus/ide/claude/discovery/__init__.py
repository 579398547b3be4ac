"""Lock files, and the editor that Claude Code chooses."""
