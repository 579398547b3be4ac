"""Golden transcripts: the messages on the wire, one JSON object a line, with placeholders for values that differ.

A line is ``{"client": {"method": ..., "params": ...}}`` or ``{"server": RESULT, "has_id": BOOL}``. In it ``TASK`` and
``CONTEXT`` stand for ids, ``TIME`` for a timestamp, ``WORKSPACE`` for the folder, ``MESSAGE`` for generated ids of
messages.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

FOLDER = Path(__file__).resolve().parent.parent / "peers" / "transcripts" / "development_tool"
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def read_transcript(name: str) -> Sequence[dict[str, Any]]:
    """Return the lines of a transcript; lines that begin with ``//`` explain it."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line and not line.startswith("//")]


def exchanges(lines: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return each request with the server's responses to it."""
    found: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for line in lines:
        if "client" in line:
            found.append((line["client"], []))
        else:
            found[-1][1].append(line)
    return found


def with_names(value: Any, names: Mapping[str, str]) -> Any:
    """Return a received value with placeholders for what differs; ``names`` maps received texts to placeholders."""
    if isinstance(value, dict):
        source = cast("dict[str, Any]", value)
        return {key: _named(key, item, names) for key, item in source.items()}
    if isinstance(value, list):
        return [with_names(item, names) for item in cast("list[Any]", value)]
    return value


def with_values(value: Any, values: Mapping[str, str]) -> Any:
    """Return a line with the values of this run in place of the placeholders."""
    text = json.dumps(value)
    for name, item in values.items():
        value = json.dumps(item)[:-1]
        text = re.sub(rf'"{name}(?=["/])', lambda _, value=value: value, text)
    return json.loads(text)


LEFT_TO_ACP = frozenset({"description", "formatted_diff", "working_directory", "error", "messageId"})
"""Members of calls and texts that a hosted ACP agent, or its host, words in its own way."""


def without_wording(value: Any) -> Any:
    """Return a received or expected value without LEFT_TO_ACP, and without the kinds of options."""
    if isinstance(value, dict):
        source = cast("dict[str, Any]", value)
        found = {key: without_wording(item) for key, item in source.items() if key not in LEFT_TO_ACP}
        if "options" in found:
            found["options"] = [{**option, "kind": None} for option in found["options"]]
        return found
    if isinstance(value, list):
        return [without_wording(item) for item in cast("list[Any]", value)]
    return value


def _named(key: str, value: Any, names: Mapping[str, str]) -> Any:
    if key == "seq":
        return "SEQ"
    if not isinstance(value, str):
        return with_names(value, names)
    if _TIME.match(value):
        return "TIME"
    for received, name in names.items():
        if value == received:
            return name
        if key == "messageId" and value.startswith(f"{received}-"):
            return "MESSAGE"
        value = value.replace(f"{received}/", f"{name}/")
    return value
