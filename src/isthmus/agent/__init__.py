"""The coding agent: session, turn loop, prompt, approval policy. Knows no HTTP, terminal or editor brand."""
