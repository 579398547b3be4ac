"""``isthmus ide``: act as the user of a running companion from another terminal."""

import json
import os
import sys
from pathlib import Path
from typing import cast

import click

from isthmus.cli.arguments.command_groups import JsonErrorGroup
from isthmus.cli.companion_user import CompanionUser, numbers_of, user_command
from isthmus.cli.ide_changes import changes, keep, redo, undo
from isthmus.cli.output.companion_texts import (
    context_lines,
    describe_agent,
    describe_review,
    kept_lines,
    log_lines,
    review_heading,
    written_lines,
)

LONGEST_WAIT_SECONDS = 3600
_OR_REJECT = "to accept nothing, use `isthmus ide reject`"
FOLLOW_SECONDS = 60.0
"""Time in seconds after which `isthmus ide log --follow` asks again, so that it notices the end of the companion."""


@click.group("ide", cls=JsonErrorGroup)
def command() -> None:
    """Act as the user at a running companion: open files, select text, answer proposed edits.

    The companion is found by the terminal it is used in ($GEMINI_CLI_IDE_SERVER_PORT) or by the workspace; name
    another one with --port or --workspace. A FILE is looked for in the current folder, then in --workspace. Lines and
    characters are 1-based. An accepted edit is written by the agent that proposed it, not by these commands.
    """


@command.command("status", short_help="Show the editor, its agents, and what they see.")
@user_command
def status(user: CompanionUser) -> None:
    """Show the editor, the attached agents, the open diffs and what agents see.

    Then show the findings of `isthmus doctor`: which editor each agent CLI would find from here, and why.
    """
    from isthmus.cli import doctor
    from isthmus.files.locations import data_directory
    from isthmus.ide.control.control_client import NoCompanionError
    from isthmus.ide.reviews.kept_text import KEPT_FOLDER, KeptTexts
    from isthmus.text.visible import visible

    examination = doctor.examine_here(user.directory)
    try:
        result = user.ask("status")
    except NoCompanionError:
        if not user.as_json:
            kept = kept_lines(KeptTexts(data_directory() / KEPT_FOLDER).paths())
            click.echo(visible("\n".join([*doctor.describe(examination), *kept])) + "\n", err=True)
        raise
    lines = [
        f"Companion on port {result['port']}: {result['editor']['display_name']} (process {result['editor']['pid']})",
        f"Workspace: {os.pathsep.join(result['workspace_folders'])}",
        "Agents: " + (", ".join(describe_agent(agent) for agent in result["agents"]) or "none attached"),
        *context_lines(result),
        *(f"Diff waits for an answer: {review_heading(review)}" for review in result["diffs"]),
        *kept_lines(result["kept"]),
        *written_lines(result.get("written", {})),
        *(f"Question waits for an answer: {question['id']}: {question['title']}" for question in result["questions"]),
        *(f"Allowed until the agent leaves: {title}" for title in result.get("allowed", ())),
        *(f"Message: {text}" for text in result["messages"]),
        "",
        *doctor.describe(examination),
    ]
    result["discovery"] = doctor.to_json(examination)
    user.show(result, "\n".join(lines))


@command.command("open", short_help="Open a file, or focus an open one.")
@click.argument("file", metavar="FILE[:LINE[:CHAR]]")
@click.option("--background", is_flag=True, help="Do not give it the focus.")
@user_command
def open_file(user: CompanionUser, file: str, background: bool) -> None:
    """Open a file, or focus an open one, with the cursor at a place."""
    path, line, character, _, _ = user.parse(file)
    result = user.ask("open", path=path, line=line, character=character, background=background)
    user.show(result, "\n".join(context_lines(result)))


@command.command("close")
@click.argument("file", metavar="FILE")
@user_command
def close_file(user: CompanionUser, file: str) -> None:
    """Close a file. A file that is not open is ignored."""
    result = user.ask("close", path=user.locate(file))
    user.show(result, "\n".join(context_lines(result)))


@command.command("select")
@click.argument("place", metavar="FILE:LINE[:CHAR][-LINE[:CHAR]]")
@user_command
def select(user: CompanionUser, place: str) -> None:
    """Open a file and select text in it.

    FILE:3 selects line 3, FILE:3-5 lines 3 to 5, FILE:3:1-3:8 the characters 1 to 7 of line 3 (the end is not
    included). FILE:3:4 puts the cursor there and selects nothing.
    """
    path, line, character, end_line, end_character = user.parse(place)
    if line is None:
        raise click.UsageError(f"expected a line after an existing file, as in src/main.py:3-5; received {place}")
    if end_line is None and character is not None:
        end_line, end_character = line, character
    elif end_character is None:
        if end_line is not None and end_line < line:
            raise click.UsageError(f"expected the last line not before the first, received {line}-{end_line}")
        end_line, end_character = (end_line or line) + 1, 1  # up to and with the newline of the last line
    result = user.ask(
        "select", path=path, line=line, character=character, end_line=end_line, end_character=end_character
    )
    user.show(result, "\n".join(context_lines(result)))


@command.command("mention", short_help="Point the agents to a file or to lines of it.")
@click.argument("place", metavar="FILE[:LINE[-LINE]]")
@user_command
def mention(user: CompanionUser, place: str) -> None:
    """Point the agents to a file or to lines of it: select them, and notify agents that support mentions."""
    path, line, _, end_line, _ = user.parse(place)
    result = user.ask("mention", path=path, line=line, end_line=end_line)
    nobody = (
        [] if result.get("agents") != 0 else ["No agent is attached; one that connects within ten seconds is notified."]
    )
    user.show(result, "\n".join(nobody + context_lines(result)))


@command.command("diagnostics", short_help="Show what linters and language servers found.")
@click.argument("file", metavar="[FILE]", required=False)
@click.option(
    "--set", "source", metavar="FILE.json|-", help="Replace those of FILE with this JSON list (headless editor)."
)
@click.option("--add", nargs=2, metavar="LINE[:CHAR] MESSAGE", multiple=True, help="Add one to FILE (headless editor).")
@click.option("--severity", type=click.Choice(["error", "warning", "information", "hint"]), default="error")
@click.option("--clear", is_flag=True, help="Remove those of FILE first (headless editor).")
@user_command
def diagnostics(
    user: CompanionUser,
    file: str | None,
    source: str | None,
    add: tuple[tuple[str, str], ...],
    severity: str,
    clear: bool,
) -> None:
    """Show what linters and language servers found; in the headless editor, set it.

    An entry of --set is an object with line, message, and optionally character, end_line, end_character, severity
    (one of those below), source and code.
    """
    path = user.locate(file) if file is not None else None
    entries: list[object] | None = None
    if source is not None or add or clear:
        if path is None:
            raise click.UsageError("--set, --add and --clear need a FILE")
        if source is not None:
            entries = _entries(source)
        else:
            entries = [] if clear else list(user.ask("diagnostics", path=path, own=True)["diagnostics"])
        for place, message in add:
            line, _, character = place.partition(":")
            if not line.isdigit() or not (character or "1").isdigit():
                raise click.UsageError(f"--add: expected LINE or LINE:CHAR, received {place}")
            added = {"line": int(line), "character": int(character or 1), "message": message, "severity": severity}
            entries.append(added)
    result = user.ask("diagnostics", path=path, set=entries)
    found = result["diagnostics"]
    text = [f"{d['file']}:{d['line']}:{d['character']}: {d['severity']}: {d['message']}" for d in found]
    user.show(result, "\n".join(text) or "no diagnostics")


@command.command("diffs", short_help="Show the edits that wait for your answer.")
@click.option("--wait", type=float, metavar="SECONDS", help="Wait up to this many seconds until there is one.")
@user_command
def diffs(user: CompanionUser, wait: float | None) -> None:
    """Show the edits that wait for your answer, as unified diffs against the files on disk.

    Where there are several hunks, they are numbered: `isthmus ide accept FILE --hunks 1,3` accepts some of them. A hunk
    is a run of changed lines. The changed cells of a notebook are numbered instead, for --cells.

    Without an editor and with Jupyter, a link to a page is shown on which you can answer in the browser, questions too;
    it can be opened once.
    """
    result = user.ask("diffs", wait_seconds=_wait_seconds(wait), wait=wait)
    asked = user.ask("questions")["questions"]
    lines = [describe_review(review) for review in result["diffs"]] or ["no diff waits for an answer"]
    lines += [f"Question waits for an answer: {question['id']}: {question['title']}" for question in asked]
    page = _page(user) if result["diffs"] or asked else None
    if page is not None:
        result["page"] = page
        lines.append(f"{'Review it' if result['diffs'] else 'Answer it'} in the browser: {page}")
    user.show(result, "\n".join(lines))


@command.command("page", short_help="Show a link to the page on which you answer.")
@user_command
def page(user: CompanionUser) -> None:
    """Show a link to the page on which you review edits and answer questions. It lets one browser in, once.

    `isthmus companion` without an editor, or with --editor web, has this page, and so has Jupyter. Other editors show
    reviews themselves.
    """
    result = user.ask("page")
    if result["page"] is None:
        from isthmus.errors import IsthmusError

        raise IsthmusError("this companion's editor has no page; it shows reviews itself, or use `isthmus ide diffs`")
    user.show(result, result["page"])


@command.command("accept", short_help="Accept a proposed edit, or a part of it.")
@click.argument("file", metavar="FILE")
@click.option(
    "--content", metavar="FILE|-", help="Accept this text instead of the proposed one; - reads standard input."
)
@click.option(
    "--cells", metavar="1,3|2-4", help="Of a notebook, accept only these changes, as numbered by `isthmus ide diffs`."
)
@click.option(
    "--hunks", metavar="1,3|2-4", help="Accept only these hunks, as numbered by `isthmus ide diffs`; the rest stays."
)
@user_command
def accept(user: CompanionUser, file: str, content: str | None, cells: str | None, hunks: str | None) -> None:
    """Accept the proposed edit of a file, as proposed or with your own text. The agent then writes it.

    With --cells the rest of the notebook keeps every byte: other cells, outputs, ids and metadata. The chosen changes
    are from the agent's proposal, without your own changes in the editor or on the page.

    With --hunks the lines of the other hunks stay as they are in the file. If the file or the proposal has changed
    since `isthmus ide diffs` listed the hunks, this command fails, and nothing is decided.

    Gemini CLI and Qwen Code do not accept an empty file: they receive it as a rejection, and this command fails.
    """
    if sum(option is not None for option in (content, cells, hunks)) > 1:
        raise click.UsageError(
            "--cells and --hunks choose from the proposal and --content replaces it; give one of them"
        )
    text = _read(content) if content is not None else None
    result = user.ask(
        "accept",
        path=user.locate(file),
        content=text,
        cells=numbers_of("--cells", cells, _OR_REJECT),
        hunks=numbers_of("--hunks", hunks, _OR_REJECT),
    )
    then = (
        "the agent writes it"
        if result["agent_connected"]
        else "the agent has left; it gets the answer if it is back soon"
    )
    user.show(result, f"accepted: {result['file']} ({then})")


@command.command("reject")
@click.argument("file", metavar="FILE")
@user_command
def reject(user: CompanionUser, file: str) -> None:
    """Reject the proposed edit of a file."""
    result = user.ask("reject", path=user.locate(file))
    user.show(result, f"rejected: {result['file']}")


for _command in (changes, keep, undo, redo):
    command.add_command(_command)


@command.command("questions", short_help="Show what agents ask to be allowed.")
@click.option("--wait", type=float, metavar="SECONDS", help="Wait up to this many seconds until there is one.")
@user_command
def questions(user: CompanionUser, wait: float | None) -> None:
    """Show what agents ask permission for, such as running code in a notebook. Answer with `isthmus ide answer`.

    Without an editor and with Jupyter, a link to a page is shown on which you can answer in the browser; it can be
    opened once.
    """
    result = user.ask("questions", wait_seconds=_wait_seconds(wait), wait=wait)
    text = "\n\n".join(f"{entry['id']}: {entry['title']}\n{entry['text']}" for entry in result["questions"])
    page = _page(user) if result["questions"] else None
    if page is not None:
        result["page"] = page
        text += f"\n\nAnswer it in the browser: {page}"
    user.show(result, text or "no question waits for an answer")


@command.command("answer")
@click.argument("question", metavar="ID")
@click.argument("decision", metavar="yes|no|session", type=click.Choice(["yes", "no", "session"]))
@click.option("--reason", metavar="TEXT", default="", help="With no: words for the agent, if it asks for a permission.")
@user_command
def answer(user: CompanionUser, question: str, decision: str, reason: str) -> None:
    """Answer a question of `isthmus ide questions` with yes or no. No answer within 10 minutes counts as no.

    "session" answers yes to all such questions of this agent until it disconnects: for code in a notebook, to any code
    in it. A yes counts once `isthmus ide questions` has shown the question.

    A question about one step of Claude Code, which its terminal asks too, has no "session" and no deadline: until it is
    answered here or there, it waits.
    """
    if reason and decision != "no":
        raise click.UsageError("--reason belongs to no")
    result = user.ask("answer", id=question, yes=decision != "no", session=decision == "session", reason=reason or None)
    user.show(result, f"answered {decision}: {result['title']}")


@command.command("log", short_help="Show what goes over the wire between agents and the companion.")
@click.option("--follow", is_flag=True, help="Go on with each new message, until Ctrl-C or the companion's end.")
@user_command
def log(user: CompanionUser, follow: bool) -> None:
    """Show the newest messages between the agents and the companion, at most 1000 and 2 MiB of them.

    `->` goes to the agent. A body is cut after 20,000 characters; tokens and other secrets are hidden. The messages
    have the contents of your files.
    """
    result = user.ask("log")
    user.show(result, "\n".join(log_lines(result["messages"])) or "no agent has sent anything yet")
    while follow:
        after = result["last"] or None
        result = user.ask("log", wait_seconds=FOLLOW_SECONDS, wait=FOLLOW_SECONDS, after=after)
        if result["messages"]:
            user.show(result, "\n".join(log_lines(result["messages"])))


def _wait_seconds(wait: float | None) -> float:
    if wait is not None and not 0 <= wait <= LONGEST_WAIT_SECONDS:  # also refuses NaN
        raise click.UsageError(f"--wait: expected seconds from 0 to {LONGEST_WAIT_SECONDS}, received {wait}")
    return wait or 0.0


def _page(user: CompanionUser) -> str | None:
    """Return a link to the editor's review page, if it has one and the caller may answer for the user."""
    from isthmus.ide.control.control_client import RefusedError

    try:
        return user.ask("page")["page"]
    except RefusedError:
        return None


def _entries(source: str) -> list[object]:
    try:
        value: object = json.loads(_read(source))
    except ValueError as error:
        raise click.UsageError(f"--set: {source} is not JSON: {error}") from error
    if not isinstance(value, list):
        raise click.UsageError("--set: expected a JSON list of diagnostics")
    return cast("list[object]", value)


def _read(source: str) -> str:
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return data.decode()
    except OSError as error:
        raise click.UsageError(f"{source} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{source} is not UTF-8 text: {error.reason} at byte {error.start}") from error
