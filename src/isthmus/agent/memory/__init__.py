"""The files that instruct the agent (GEMINI.md, AGENTS.md): which there are, their imports, and adding to them."""
