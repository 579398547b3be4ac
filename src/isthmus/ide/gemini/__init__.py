"""Gemini CLI companion protocol: the server for Gemini CLI and its forks, and the client of our own agent."""
