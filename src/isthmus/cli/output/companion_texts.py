"""Texts of ``isthmus ide``: a companion's answers, as a user reads them."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from isthmus.ide.reviews.reviewed_file import text_on_disk
from isthmus.notebooks.view import changes_between, describe
from isthmus.text.diff import unified_diff
from isthmus.text.hunks import comparable


def kept_lines(paths: Sequence[str]) -> list[str]:
    """Return a line for each file with text that the user typed into a review that ended without a decision."""
    return [f"Kept what you typed into a review that ended: {path}" for path in paths]


def written_lines(written: Mapping[str, Any]) -> list[str]:
    """Return a line about what agents wrote without asking, if there is anything."""
    if not written.get("files"):
        return []
    return [f"Written without asking: {written['files']} files in {written['turns']} turns; see `isthmus ide changes`"]


def describe_agent(agent: Mapping[str, Any]) -> str:
    """Return an agent's title with its process id and connection, as far as known."""
    known = [f"process {agent['pid']}"] if "pid" in agent else []
    known += [agent[name] for name in ("folder", "terminal") if agent.get(name)]
    known += [] if agent["connected"] else ["not connected now"]
    return agent["title"] + (f" ({', '.join(known)})" if known else "")


def context_lines(result: Mapping[str, Any]) -> list[str]:
    """Return a line for each open file that agents see, with its cursor and selection."""
    files = result["context"].get("workspaceState", {}).get("openFiles", [])
    lines: list[str] = []
    for file in files:
        line = f"{'Active' if file.get('isActive') else 'Open'}: {file['path']}"
        if "cursor" in file:
            line += f":{file['cursor']['line']}:{file['cursor']['character']}"
        if "selectedText" in file:
            line += f" ({len(file['selectedText'])} characters selected)"
        lines.append(line)
    return lines or ["No files are open."]


def review_heading(review: Mapping[str, Any]) -> str:
    """Return the file of a review, and the agent that proposed the edit."""
    turn = "" if review["shown"] else ", shown after the one before it"
    process = f", process {review['agent_pid']}" if "agent_pid" in review else ""
    return f"{review['file']} ({review['agent']}{process}{turn})"


def describe_review(review: Mapping[str, Any]) -> str:
    """Return a review's heading and its diff with numbered hunks; for a notebook the changed cells, numbered."""
    old = text_on_disk(review["file"])
    changes = changes_between(review["file"], old, review["new_content"])
    if changes is not None and changes.all:
        return f"{review_heading(review)}\n{describe(changes)}"
    new, typed = review["new_content"], review.get("typed_content")
    heading = review_heading(review) + (", with what you typed into it" if typed is not None else "")
    new = new if typed is None else typed
    if old is not None:
        compared = comparable(old, new)
        old = old.removeprefix("\ufeff") if compared == new else compared  # else the newlines alone change
    return f"{heading}\n{unified_diff(old, new, review['file'].lstrip('/'), is_numbered=True)}"


def log_lines(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each recorded message: time, agent, direction (``->`` to the agent), body."""
    from isthmus.programs.process.logs import Redaction, secrets_of  # imports much that other commands do not need

    redaction = Redaction(secrets_of(os.environ))
    lines: list[str] = []
    for each in messages:
        at = datetime.fromtimestamp(each["at"], UTC).astimezone().time().isoformat("milliseconds")
        body = redaction(each["body"]).replace("\n", " ")
        lines.append(f"{at} {each['agent']} {each['arrow']} {body}")
    return lines
