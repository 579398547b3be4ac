"""Programs that a lasting permission may cover by their first words, each with the options that it covers.

Each module has the rows of one kind of programs as data; `rows` says how they are written and finds them.
"""
