"""Version 2 of the Agent Client Protocol, a draft: its wire, and the messages that version 1 does not have.

It implements ``schema/v2/schema.json`` as of 2 November 2026. The draft may change before it is a version; nothing
outside this room depends on its form. It does no I/O.
"""
