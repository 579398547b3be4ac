"""``isthmus ide changes``, ``keep``, ``undo`` and ``redo``: review what agents wrote without asking."""

import click

from isthmus.cli.companion_user import CompanionUser, Result, numbers_of, user_command

LONGEST_WAIT_SECONDS = 600
_SCOPE = (
    click.option("--all", "everything", is_flag=True, help="Everything that was written since you last looked."),
    click.option("--turn", type=click.IntRange(1), metavar="N", help="Only what was written in this turn."),
    click.option("--hunks", metavar="1,3|2-4", help="Only these hunks, as numbered by `isthmus ide changes FILE`."),
    click.argument("file", metavar="[FILE]", required=False),
)


@click.command("changes", short_help="Show what agents wrote without asking.")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--diff", is_flag=True, help="Show the changed lines of every file, with numbered hunks.")
@click.option("--turn", type=click.IntRange(1), metavar="N", help="Only of this turn.")
@click.option("--wait", type=click.FloatRange(0, LONGEST_WAIT_SECONDS), metavar="SECONDS", help="Wait for a change.")
@user_command
def changes(user: CompanionUser, file: str | None, diff: bool, turn: int | None, wait: float | None) -> None:
    """Show what agents wrote since you last looked, by turn; with a FILE or --diff the changed lines.

    In their automatic modes agents write files without asking. While they are attached, the companion records what
    they write. Keep it with `isthmus ide keep`, or write what was there before with `isthmus ide undo`; both take a
    file, a turn, or numbered hunks. A hunk is a run of changed lines. What you saved in your editor is not listed.
    """
    from isthmus.cli.output.written_texts import describe_changes, describe_diff

    if wait:
        after = user.ask("written")["count"]
        user.ask("written_wait", wait_seconds=wait, after=after, wait=wait)
    if file is not None:
        result = user.ask("written_file", path=user.locate(file), turn=turn)
        user.show(result, describe_diff(result))
        return
    result = user.ask("written")
    if turn is not None:
        result["turns"] = [each for each in result["turns"] if each["number"] == turn]
    if not diff:
        user.show(result, describe_changes(result))
        return
    listed = result["files"] if turn is None else [entry for each in result["turns"] for entry in each["files"]]
    result["diffs"] = [user.ask("written_file", path=entry["path"], turn=turn) for entry in listed]
    texts = [describe_changes(result), *(describe_diff(each) for each in result["diffs"])]
    user.show(result, "\n\n".join(texts))


def _scope(user: CompanionUser, file: str | None, turn: int | None, hunks: str | None, everything: bool) -> Result:
    """Return the arguments of a decision.

    Raises:
        click.UsageError: it is not said what is to be decided.
    """
    if everything and (file is not None or turn is not None or hunks is not None):
        raise click.UsageError("--all is everything; give it without a FILE, --turn and --hunks")
    if not everything and file is None and turn is None:
        raise click.UsageError("expected a FILE, --turn N or --all; `isthmus ide changes` lists what was written")
    if hunks is not None and file is None:
        raise click.UsageError("--hunks: hunks are numbered in each file; name the FILE, too")
    path = None if file is None else user.locate(file)
    return {"path": path, "turn": turn, "hunks": numbers_of("--hunks", hunks, "without --hunks, all are meant")}


def _with_scope(function: click.decorators.FC) -> click.decorators.FC:
    for option in _SCOPE:
        function = option(function)
    return function


@click.command("keep", short_help="Keep what agents wrote: it is not listed again.")
@_with_scope
@user_command
def keep(user: CompanionUser, file: str | None, turn: int | None, hunks: str | None, everything: bool) -> None:
    """Keep what agents wrote to a file, in a turn, or all of it. No file changes; it is not listed any longer.

    A hunk that was built upon an earlier one is kept with it.
    """
    result = user.ask("written_keep", **_scope(user, file, turn, hunks, everything))
    user.show(result, "\n".join(f"kept: {path}" for path in result["kept"]) or "nothing waits for you")


@click.command("undo", short_help="Write what was there before an agent wrote.")
@_with_scope
@user_command
def undo(user: CompanionUser, file: str | None, turn: int | None, hunks: str | None, everything: bool) -> None:
    """Undo what agents wrote to a file, in a turn, or all of it: write what was there before.

    What you changed yourself stays. What later turns built upon an undone hunk is undone with it. A hunk that you have
    changed since it was written is yours, and a file with unsaved text in the editor is left alone. Commands that an
    agent ran are not undone. `isthmus ide redo` takes an undo back.
    """
    result = user.ask("written_undo", **_scope(user, file, turn, hunks, everything))
    lines = [f"undone: {path}" for path in result["undone"]]
    lines += [f"not undone: {problem}" for problem in result["problems"]]
    user.show(result, "\n".join([*lines, f"Take it back with: isthmus ide redo {result['undo']}"]))


@click.command("redo", short_help="Take an undo back.")
@click.argument("number", metavar="[N]", type=click.IntRange(1), required=False)
@user_command
def redo(user: CompanionUser, number: int | None) -> None:
    """Take an undo back: write what agents had written. N is the number of the undo; without it, the last one."""
    result = user.ask("written_take_back", undo=number)
    lines = [f"written again: {path}" for path in result["restored"]]
    user.show(result, "\n".join([*lines, *(f"not written: {problem}" for problem in result["problems"])]))
