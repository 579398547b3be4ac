"""Review after the fact: what agents wrote since the user last looked, kept or undone by turn, file and hunk."""
