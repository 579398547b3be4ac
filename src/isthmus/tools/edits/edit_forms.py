"""Arguments of edits as models write them that know other agents' tools, as the arguments of our own. Pure.

A form that can mean two things is refused. Not here: slips in the texts themselves, see
:mod:`isthmus.tools.matching.readings`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from isthmus.encoding.codec import JsonObject
from isthmus.tools.port.arguments import INVALID_ARGUMENTS
from isthmus.tools.port.failure import ToolFailure

FILE_NAMES = ("file_path", "filePath", "path", "absolute_path", "absolutePath", "target_file", "filename", "file")
CONTENT_NAMES = ("content", "file_text", "contents")
_OLD_NAMES = ("old_string", "oldString", "old_str", "oldStr", "old_text", "oldText", "old", "search")
_NEW_NAMES = ("new_string", "newString", "new_str", "newStr", "new_text", "newText", "new", "replacement")
_ALL_NAMES = ("allow_multiple", "replace_all", "replaceAll")
_BLOCK_NAMES = ("diff", "blocks")
_EDIT_NAMES = (_OLD_NAMES, _NEW_NAMES, _ALL_NAMES, ("expected_replacements",))
_BEGIN = re.compile(r"(?:<{5,9}|-{5,9}) SEARCH>?\s*")
_MIDDLE = re.compile(r"={5,9}\s*")
_END = re.compile(r"(?:>{5,9}|\+{5,9}) REPLACE\s*")


def with_usual_names(tool: str, given: Mapping[str, Any], *names: Sequence[str]) -> dict[str, Any]:
    """Return arguments with the first of each group of names in place of the others; empty ones do not count.

    Raises:
        ToolFailure: two names of one group have different values.
    """
    found = dict(given)
    for group in names:
        values = {name: found.pop(name) for name in group if name in found}
        used = {name: value for name, value in values.items() if value not in (None, "")} or values
        if len({json.dumps(value, sort_keys=True) for value in used.values()}) > 1:
            message = f"{tool}: expected one of {' and '.join(used)}, received both, with different values"
            raise ToolFailure(message, INVALID_ARGUMENTS)
        if used:
            found[group[0]] = next(iter(used.values()))
    return found


def replace_arguments(tool: str, arguments: Mapping[str, Any]) -> JsonObject:
    """Return the arguments of a replacement by their usual names and in their usual form.

    Raises:
        ToolFailure: they can mean two things, or a text in them is not in the form that it begins.
    """
    given = with_usual_names(tool, arguments, FILE_NAMES, *_EDIT_NAMES)
    blocks = next((given[name] for name in _BLOCK_NAMES if isinstance(given.get(name), str)), None)
    if blocks is not None and _BEGIN.match(blocks.strip()) is not None and "old_string" not in given:
        given = {name: value for name, value in given.items() if name not in _BLOCK_NAMES}
        given["edits"] = _blocks(tool, blocks)
    edits: object = given.get("edits")
    if isinstance(edits, str) and edits.strip():
        edits = _from_json(tool, edits)
    if isinstance(edits, dict):
        edits = [cast("object", edits)]
    if isinstance(edits, list):
        edits = [_edit(tool, edit) for edit in cast("list[object]", edits)]
        alone = {name: given.get(name) for name in ("old_string", "new_string")}
        if len(edits) == 1 and edits[0] == {**cast("dict[str, Any]", edits[0]), **alone}:
            given = {name: value for name, value in given.items() if name not in alone}
    if edits:
        given["edits"] = edits
    return _with_plain_values(given)


def _edit(tool: str, edit: object) -> object:
    """Return an edit of a list with the usual names; anything else as it is."""
    if not isinstance(edit, dict):
        return edit
    return _with_plain_values(with_usual_names(tool, cast("dict[str, Any]", edit), *_EDIT_NAMES))


def _with_plain_values(given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with a truth value or a number where a text says one."""
    allow, expected = given.get("allow_multiple"), given.get("expected_replacements")
    if isinstance(allow, str) and allow.strip().lower() in ("true", "false"):
        given["allow_multiple"] = allow.strip().lower() == "true"
    if isinstance(expected, str) and expected.strip().isdecimal():
        given["expected_replacements"] = int(expected)
    return given


def _from_json(tool: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{tool}: edits: expected an array of objects, received a text that is not JSON: {error}"
        raise ToolFailure(message[:300], INVALID_ARGUMENTS) from error


def _blocks(tool: str, text: str) -> list[object]:
    """Return the edits in blocks of lines: ``<<<<<<< SEARCH``, the old ones, ``=======``, the new ones, ``>>>>>>>``."""
    edits: list[object] = []
    parts: list[list[str]] = []
    for line in text.strip("\n").split("\n"):
        if not parts and _BEGIN.fullmatch(line):
            parts = [[]]
        elif len(parts) == 1 and _MIDDLE.fullmatch(line):
            parts.append([])
        elif len(parts) == 2 and _END.fullmatch(line):
            old, new = ("".join(f"{each}\n" for each in part) for part in parts)
            edits.append({"old_string": old, "new_string": new})
            parts = []
        elif parts and not _MIDDLE.fullmatch(line) and not _BEGIN.fullmatch(line):
            parts[-1].append(line)
        elif parts or line.strip():
            raise _bad_blocks(tool, line)
    if parts:
        raise _bad_blocks(tool, "the end")
    return edits


def _bad_blocks(tool: str, line: str) -> ToolFailure:
    message = (
        f"{tool}: expected blocks of '<<<<<<< SEARCH', '=======' and '>>>>>>> REPLACE', each with one of them, received"
        f" {line[:80]!r} in between; nothing was changed. Send old_string and new_string instead"
    )
    return ToolFailure(message, INVALID_ARGUMENTS)
