"""Helpers that write the rows of several programs or sub-commands at once."""


def programs(names: str, row: str) -> dict[str, str]:
    """Return the same row for each program of a text with names between spaces."""
    return dict.fromkeys(names.split(), row)


def sub_commands(program: str, names: str, row: str) -> dict[str, str]:
    """Return the same row for each sub-command of a program; its name may itself be that of a sub-command."""
    return {f"{program} {name}": row for name in names.split()}
