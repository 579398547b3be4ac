"""Custom commands: prompts in TOML files, with the files and commands that they include."""
