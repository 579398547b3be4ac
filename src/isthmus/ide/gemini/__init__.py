"""The Gemini CLI companion protocol: the companion that Gemini CLI and its forks connect to, and our client of it."""
