"""Discovery of IDEs by agent CLIs: the discovery files, the choice of each CLI, and the diagnosis of problems."""
