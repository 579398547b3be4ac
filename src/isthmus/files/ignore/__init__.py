"""Ignore files with git's rules, for the agent's tools and for what the companion tells of open files.

``ignore_file`` reads them and answers for paths, ``git_pattern`` compiles one line, ``path_pattern`` matches paths name
by name. Whoever wrote the project wrote the patterns: matching takes time in proportion to pattern and path, and the
size of files and patterns is limited.
"""
