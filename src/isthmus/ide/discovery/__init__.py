"""Discovery of IDEs by agent CLIs: the discovery files, the one that each CLI takes, and what goes wrong."""
