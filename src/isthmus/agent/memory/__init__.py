"""The files that instruct the agent (GEMINI.md, AGENTS.md): finding and reading them, their imports, adding to them."""
