"""Calls of the tools that a request offers, for what a step does: each client has names of its own for the same."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.money.prompt import Wire
from bench.money.script import Action, Edit, Look, Read, Shell

READERS = ("Read", "read_file", "read")
EDITORS = ("Edit", "replace", "edit")
SHELLS = ("Bash", "run_shell_command", "bash", "exec_command", "shell_command", "shell")
_PATHS = ("file_path", "absolute_path", "filePath", "path")
_OLD, _NEW = ("old_string", "oldString"), ("new_string", "newString")
_COMMANDS = ("command", "cmd")
_OUTPUT_TOKENS = 10_000
_BUDGET = f'// @exec: {{"max_output_tokens": {_OUTPUT_TOKENS}}}'
"""Line by which a script may return a whole file."""
_WORDS: Mapping[str, object] = {"description": "Do what the user asked for.", "instruction": "Change the line."}


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of a request; ``is_text``: it takes a text in place of an object."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_text: bool = False

    def names(self, *names: str) -> str:
        """Return the first of these names of an argument that it has."""
        properties = self.schema.get("properties", {})
        return next(name for name in names if name in properties)

    @property
    def words(self) -> dict[str, object]:
        """The further arguments that it requires."""
        return {name: _WORDS[name] for name in self.schema.get("required", ()) if name in _WORDS}


def offered(wire: Wire, body: Mapping[str, Any]) -> dict[str, OfferedTool]:
    """Return the tools of a request by name."""
    tools: list[Mapping[str, Any]] = list(body.get("tools") or ())
    if wire == "responses" and not isinstance(body["input"], str):
        items: Sequence[Mapping[str, Any]] = body["input"]
        # Codex declares tools in its input, by namespaces.
        for item in items:
            tools += item["tools"] if item.get("type") == "additional_tools" else ()
    return {tool.name: tool for tool in _offered(wire, tools)}


def _offered(wire: Wire, tools: Sequence[Mapping[str, Any]]) -> Iterator[OfferedTool]:
    for tool in tools:
        match wire:
            case "anthropic":
                yield OfferedTool(tool["name"], tool.get("input_schema", {}))
            case "chat":
                if "function" in tool:
                    yield OfferedTool(tool["function"]["name"], tool["function"].get("parameters", {}))
            case "responses":
                if tool["type"] == "namespace":
                    yield from _offered(wire, tool["tools"])
                elif "name" in tool:
                    is_text = tool["type"] == "custom"
                    yield OfferedTool(tool["name"], tool.get("parameters") or {}, is_text)
            case "gemini":
                for each in tool.get("functionDeclarations", ()):
                    schema: Mapping[str, Any] = each.get("parametersJsonSchema") or each.get("parameters") or {}
                    yield OfferedTool(each["name"], schema)


def calls_of(
    actions: Sequence[Action], tools: Mapping[str, OfferedTool], root: str
) -> list[tuple[str, Mapping[str, Any] | str]]:
    """Return the tools and their arguments for what a message of a step does in the workspace ``root``.

    Raises:
        LookupError: no tool of the request does it.
    """
    if (script := tools.get("exec")) is not None and script.is_text:
        return [(script.name, f"{_BUDGET}\n{_script(action, root)}") for action in actions]
    return [_call(action, tools, root) for action in actions]


def _script(action: Action, root: str) -> str:
    """Return the lines of JavaScript by which Codex's models call tools."""
    match action:
        case Read(path):
            command = {"cmd": f"cat {path}", "max_output_tokens": _OUTPUT_TOKENS}
            return f"text((await tools.exec_command({json.dumps(command)})).output);"
        case Look(path):
            return f"image(await tools.view_image({json.dumps({'path': f'{root}/{path}'})}));"
        case Edit(path, old, new):
            return f"text(await tools.apply_patch({json.dumps(_patch(f'{root}/{path}', old, new))}));"
        case Shell(command):
            return f"text((await tools.exec_command({json.dumps({'cmd': command})})).output);"


def _call(action: Action, tools: Mapping[str, OfferedTool], root: str) -> tuple[str, Mapping[str, Any] | str]:
    match action:
        case Read(path):
            if (tool := _first(tools, READERS)) is None:
                return _call(Shell(f"cat {path}"), tools, root)
            return tool.name, {tool.names(*_PATHS): f"{root}/{path}", **tool.words}
        case Look(path):
            if (tool := _first(tools, ("view_image", *READERS))) is None:
                raise LookupError(f"no tool reads an image: {', '.join(tools)}")
            return tool.name, {tool.names(*_PATHS): f"{root}/{path}", **tool.words}
        case Edit(path, old, new):
            if (tool := _first(tools, EDITORS)) is None:
                return _patching(tools, _patch(f"{root}/{path}", old, new))
            place = tool.names(*_PATHS)
            return tool.name, {place: f"{root}/{path}", tool.names(*_OLD): old, tool.names(*_NEW): new, **tool.words}
        case Shell(command):
            if (tool := _first(tools, SHELLS)) is None:
                raise LookupError(f"no tool runs a command: {', '.join(tools)}")
            name = tool.names(*_COMMANDS)
            is_list = tool.schema["properties"][name].get("type") == "array"
            return tool.name, {name: ["bash", "-c", command] if is_list else command, **tool.words}


def _patch(path: str, old: str, new: str) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"


def _patching(tools: Mapping[str, OfferedTool], patch: str) -> tuple[str, Mapping[str, Any] | str]:
    if (tool := tools.get("apply_patch")) is None:
        raise LookupError(f"no tool changes a file: {', '.join(tools)}")
    return tool.name, patch if tool.is_text else {tool.names("input", "patch", "patchText"): patch}


def _first(tools: Mapping[str, OfferedTool], names: Sequence[str]) -> OfferedTool | None:
    return next((tools[name] for name in names if name in tools), None)
