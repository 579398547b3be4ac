"""The screen of a terminal: blocks of lines, Markdown, tables, code and colours."""
