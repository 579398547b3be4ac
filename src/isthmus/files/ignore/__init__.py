"""Ignore files with git's rules, for the agent's tools and the companion's reports of open files.

``ignore_file`` reads them and decides about paths, ``git_pattern`` compiles one line, ``path_pattern`` matches paths
name by name. The patterns come from the project and are not trusted: matching takes time in proportion to pattern and
path, and the size of files and patterns is limited.
"""
