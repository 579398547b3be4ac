"""Rules of the settings on tools and answers: permissions, decisions and hooks. Nothing here reads a file."""
