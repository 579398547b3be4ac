"""The files that instruct the agent (GEMINI.md, AGENTS.md, CLAUDE.md): reading them, their imports, adding to them."""
