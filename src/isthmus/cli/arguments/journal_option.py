"""The option ``--journal`` of the commands that read or write stored tasks."""

import click

journal_option = click.option(
    "--journal",
    metavar="URL",
    default="",
    envvar="ISTHMUS_JOURNAL",
    help="Keep tasks in this PostgreSQL database, postgresql://USER@HOST/NAME, and not in a file of the data folder.",
)
