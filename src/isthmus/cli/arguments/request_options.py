"""The options of the commands that talk to an agent: the prompt, and the form of input and output."""

from pathlib import Path

import click

from isthmus.cli.arguments.option_group import option_group

prompt_options = option_group(
    click.option("-p", "--prompt", metavar="TEXT", help="Run this prompt, ask nothing, print the answer, exit."),
    click.option("-i", "--prompt-interactive", metavar="TEXT", help="Send this prompt first, then go on talking."),
    click.option(
        "-o",
        "--output-format",
        type=click.Choice(["text", "json", "stream-json"]),
        default="text",
        help="Output of -p: the answer, one JSON object, or one JSON object per line for each event.",
    ),
    click.option(
        "--input-format",
        type=click.Choice(["text", "stream-json"]),
        default="text",
        help="Standard input: the prompt, or lines of JSON with a message each (with -o stream-json and no prompt).",
    ),
    click.option(
        "--output-schema",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="With -p: the answer is JSON that fits the JSON Schema in FILE; it is asked for again until it does.",
    ),
)
"""Decorator that adds the options of a prompt.

They are fields of :class:`~isthmus.programs.terminal.run_request.GivenRequest`.
"""
