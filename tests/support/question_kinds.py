"""Each kind of question that a user is asked, in one scripted session, with the effect that its answer has."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.agent.session.loops import REPETITIONS
from isthmus.development_tool import ConfirmationDetails, ExecuteDetails, FileDiff, GenericDetails, McpDetails
from isthmus.forms.asked_question import ASK_USER
from isthmus.questions import ELICITATION, LOOP_QUESTION, SAMPLING

ASKING = Path(__file__).with_name("asking_mcp_server.py")
NOTES = Path(__file__).with_name("notes_mcp_server.py")
PAGE = "https://login.example.org/a"


@dataclass(frozen=True)
class AskedKind:
    """A kind of question, and the call of the model that leads to it.

    ``titles`` are what the page asks, one question after the other. ``details`` is the kind of confirmation, and
    ``tool`` the tool name of a call that is a question itself; empty otherwise. ``calls`` is how often the model calls.
    """

    name: str
    details: type[ConfirmationDetails] | None
    call: tuple[str, dict[str, Any]]
    titles: Sequence[str]
    tool: str = ""
    calls: int = 1


def _patch(*lines: str) -> tuple[str, dict[str, Any]]:
    return "apply_patch", {"input": "\n".join(("*** Begin Patch", *lines, "*** End Patch")) + "\n"}


QUESTIONS = [
    {
        "question": "Which zone has no offset?",
        "type": "choice",
        "options": [{"label": "Harbour", "description": "its own zone"}, {"label": "UTC"}],
    },
    {
        "question": "Which harbours are meant?",
        "type": "choice",
        "options": [{"label": "Belém"}, {"label": "Cacilhas"}],
        "multiSelect": True,
    },
    {"question": "What is the report called?", "type": "text", "placeholder": "a name"},
    {"question": "Write over it?", "type": "yesno"},
]
_EDIT = {"file_path": "notes.txt", "instruction": "x", "old_string": "old", "new_string": "new"}
_NEW = {"file_path": "made.txt", "content": "made\n"}
_COMMAND = {"command": "printf ran > ran.txt", "description": "Write it"}
KINDS = (
    AskedKind("edit", FileDiff, ("replace", _EDIT), ["Change notes.txt"]),
    AskedKind("new file", FileDiff, ("write_file", _NEW), ["Create made.txt"]),
    AskedKind("deletion", FileDiff, _patch("*** Delete File: gone.txt"), ["Delete gone.txt"]),
    AskedKind(
        "move",
        FileDiff,
        _patch("*** Update File: from.txt", "*** Move to: to.txt"),
        ["Create to.txt", "Delete from.txt"],
    ),
    AskedKind("command", ExecuteDetails, ("run_shell_command", _COMMAND), ["Run printf ran > ran.txt"]),
    AskedKind("MCP call", McpDetails, ("keep", {"note": "a line"}), ["Call keep"]),
    AskedKind(
        "questions of the model", None, (ASK_USER, {"questions": QUESTIONS}), ["Which zone has no offset?"], ASK_USER
    ),
    AskedKind("form of a server", FileDiff, ("release", {}), ["Which release is it for?"], ELICITATION),
    AskedKind("page of a server", GenericDetails, ("page", {"url": PAGE}), ["Log in there"], ELICITATION),
    AskedKind("sampling", GenericDetails, ("sample", {}), ["tickets asks your model"], SAMPLING),
    AskedKind(
        "repetition",
        GenericDetails,
        ("list_directory", {"dir_path": "."}),
        ["The model repeats itself: let it go on?"],
        LOOP_QUESTION,
        calls=REPETITIONS,
    ),
)
FILES = {"notes.txt": "old\n", "gone.txt": "gone\n", "from.txt": "moved\n"}


def script() -> str:
    """Return a script in which one session leads to all kinds; the model says what it has got from each call."""
    replies: list[Any] = []
    for number, kind in enumerate(KINDS):
        name, arguments = kind.call
        before = [{"text": f"{KINDS[number - 1].name}: {{{{result}}}}"}] if number else []
        call = {"call": {"name": name, "arguments": arguments}}
        replies += [{"steps": [*before, call]}, *[{"steps": [call]}] * (kind.calls - 1)]
    # The last one repeats itself, is told so, and calls once more: then the user is asked.
    name, arguments = KINDS[-1].call
    over = {"text": f"{KINDS[-1].name}: {{{{result}}}}\nIt is over."}
    scenarios = [
        {"prompt": r"\Aall", "replies": replies},
        {"prompt": r"\A\[Isthmus", "replies": [{"call": {"name": name, "arguments": arguments}}, over]},
        {"prompt": "Resource", "replies": [{"text": "forty-two"}]},
    ]
    return json.dumps({"name": "practice", "scenarios": scenarios})  # a YAML document, too


def servers(log: Path) -> dict[str, Any]:
    """Return the MCP servers: one whose calls ask for themselves, and one whose calls the user is asked about."""
    return {
        "tickets": {"command": sys.executable, "args": [str(ASKING), str(log)], "trust": True},
        "notes": {"command": sys.executable, "args": [str(NOTES)]},
    }


def write_files(workspace: Path) -> None:
    """Write the files as they are before the session."""
    for path in workspace.glob("*.txt"):
        path.unlink()
    for name, text in FILES.items():
        (workspace / name).write_text(text, "utf-8")


def missing_effects(workspace: Path, said: str) -> list[str]:
    """Return the names of the kinds whose answer had no effect: on the disk, at the server, or for the model.

    ``said`` is all that the model said, in which it repeats what it has got.
    """

    def text(name: str) -> str | None:
        path = workspace / name
        return path.read_text("utf-8") if path.exists() else None

    told = dict(
        re.findall(r"^([\w ]+): (.*?)(?=^(?:" + "|".join(kind.name for kind in KINDS) + r"): |\Z)", said, re.M | re.S)
    )
    answers = told.get("questions of the model", "")
    has_effect = {
        "edit": text("notes.txt") == "new\n",
        "new file": text("made.txt") == "made\n",
        "deletion": text("gone.txt") is None,
        "move": text("from.txt") is None and text("to.txt") == "moved\n",
        "command": text("ran.txt") == "ran",
        "MCP call": "kept a line" in told.get("MCP call", ""),
        "questions of the model": all(word in answers for word in ("UTC", "Belém", "Cacilhas", "report", "Yes")),
        "form of a server": "accept {'release': '2.9', 'tell': 'you@harbour.example', 'close': False}"
        in told.get("form of a server", ""),
        "page of a server": "accept" in told.get("page of a server", ""),
        "sampling": "forty-two" in told.get("sampling", ""),
        "repetition": "notes.txt" in told.get("repetition", ""),  # it went on
    }
    return [kind.name for kind in KINDS if not has_effect[kind.name]]
