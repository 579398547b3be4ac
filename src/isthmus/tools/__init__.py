"""The built-in tools, one file each: schema on top, ``run`` below.

To add one, copy a file and list it in ``builtin``.
"""
