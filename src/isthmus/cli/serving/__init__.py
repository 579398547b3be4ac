"""Options of ``isthmus serve``, and its subcommands."""
