"""The options of ``isthmus serve`` about its part among several servers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isthmus.cli.arguments.option_group import option_group
from isthmus.programs.setup.setup import BadInputError

if TYPE_CHECKING:
    from isthmus.engine.port.placement import Placement
    from isthmus.worktrees.repository_url import RepositoryUrl

replica_options = option_group(
    click.option(
        "--slots",
        type=click.IntRange(min=1),
        metavar="N",
        help="Tasks at work at once; the others wait in a queue, in which users take turns. Default: any number.",
    ),
    click.option(
        "--label", "labels", multiple=True, metavar="NAME", help="Run the tasks of --workspace-label NAME=..., too."
    ),
    click.option(
        "--workspace-label",
        "labelled",
        multiple=True,
        metavar="NAME=DIR",
        help="Sessions in DIR and below run only on servers with --label NAME. Repeatable.",
    ),
    click.option(
        "--repository",
        "repositories",
        multiple=True,
        metavar="NAME=git+URL[#REF]",
        help="Sessions may work in this repository, each in a worktree of its own that other servers can go on with:"
        " their workspace_path is /git:NAME. Repeatable.",
    ),
    click.option(
        "--lease-seconds",
        type=click.FloatRange(1, 3600),
        default=20.0,
        metavar="SECONDS",
        help="Time after which others go on with the tasks of a server that hangs or is cut off. Default: 20.",
    ),
    click.option(
        "--drain-seconds",
        type=click.FloatRange(0, 86_400),
        default=0.0,
        metavar="SECONDS",
        help="On SIGTERM begin no more work, and give running tasks so long before others go on with them. Default: 0.",
    ),
)


def placement(options: dict[str, Any]) -> "Placement":
    """Return the part of the server in running tasks, as the options have it.

    Raises:
        BadInputError: a label or a folder is invalid.
    """
    from isthmus.engine.port.placement import Placement

    labels, folders = _labels(options["labels"]), _labelled_folders(options["labelled"])
    return Placement(options["slots"], labels, folders, options["lease_seconds"])


def repositories(options: dict[str, Any]) -> "dict[str, RepositoryUrl]":
    """Return the repositories that the options name, by their names.

    Raises:
        BadInputError: one is invalid, or its name is used twice.
    """
    found: dict[str, RepositoryUrl] = {}
    for item in options["repositories"]:
        from isthmus.engine.port.placement import is_label
        from isthmus.worktrees.errors import WorktreeError
        from isthmus.worktrees.repository_url import parse_repository

        name, equals, url = item.partition("=")
        if not equals or not is_label(name) or name in found:
            # What was given may hold a password.
            raise BadInputError(
                "--repository: expected NAME=git+URL[#REF] with another name for each, such as"
                " app=git+https://git.example.org/team/app.git#main"
            )
        try:
            found[name] = parse_repository(url)
        except WorktreeError as error:
            raise BadInputError(f"--repository {name}: {error}") from error
    return found


def _labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    from isthmus.engine.port.placement import LABELS, is_label

    for label in labels:
        if not is_label(label):
            raise BadInputError(f"--label {label!r}: expected {LABELS}, such as gpu")
    return labels


def _labelled_folders(given: tuple[str, ...]) -> tuple[tuple[Path, str], ...]:
    from isthmus.engine.port.placement import is_label

    found: list[tuple[Path, str]] = []
    for item in given:
        label, equals, folder = item.partition("=")
        if not equals or not is_label(label) or not Path(folder).is_absolute():
            raise BadInputError(
                f"--workspace-label {item!r}: expected NAME=DIR with the absolute path of a folder, such as gpu=/srv/x"
            )
        found.append((Path(folder).resolve(), label))
    return tuple(found)
