"""Commands of the shell: run and awaited, or in the background."""
