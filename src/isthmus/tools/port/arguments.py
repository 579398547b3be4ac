"""Checks the arguments of a tool call against the tool's JSON schema, and returns them with their types.

Supports the part of JSON Schema that the built-in tools use. Arguments that a schema does not name are ignored: models
send arguments of other agents' tools with the same name.
"""

from collections.abc import Mapping
from typing import Any, cast

from isthmus.record import record
from isthmus.tools.port.base import Arguments
from isthmus.tools.port.failure import ToolFailure

INVALID_ARGUMENTS = "invalid_arguments"
"""Category of a call whose arguments do not match the schema."""
MAXIMUM_PATTERN_LENGTH = 1_000
"""Maximum number of characters of a regular expression or a glob pattern."""


@record
class CheckedArguments:
    """Arguments that match a schema; those that were not sent, or sent as null, are absent."""

    values: Mapping[str, Any]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def string(self, name: str, default: str = "") -> str:
        """Return the string ``name``."""
        return str(self.values.get(name, default))

    def integer(self, name: str, default: int) -> int:
        """Return the whole number ``name``."""
        return int(self.values.get(name, default))

    def boolean(self, name: str, *, default: bool = False) -> bool:
        """Return the boolean ``name``."""
        return bool(self.values.get(name, default))

    def strings(self, name: str) -> tuple[str, ...]:
        """Return the array of strings ``name``."""
        return tuple(self.values.get(name, ()))

    def objects(self, name: str) -> "tuple[CheckedArguments, ...]":
        """Return the array of objects ``name``."""
        return tuple(CheckedArguments(cast("Mapping[str, Any]", item)) for item in self.values.get(name, ()))

    def nested(self, name: str) -> "CheckedArguments":
        """Return the object ``name``."""
        return CheckedArguments(cast("Mapping[str, Any]", self.values.get(name, {})))


def check_arguments(
    tool_name: str, parameters: Mapping[str, Any], arguments: Arguments, aliases: Mapping[str, str] | None = None
) -> CheckedArguments:
    """Return the arguments that ``parameters`` describes. ``aliases`` maps older names of arguments to current ones.

    Raises:
        ToolFailure: an argument is missing or invalid; the message names it, what was expected and what came.
    """
    renamed: dict[str, Any] = {}
    for name, value in arguments.items():
        current = (aliases or {}).get(name, name)
        if current == name or current not in arguments:
            renamed[current] = value
    return CheckedArguments(_object(tool_name, "", parameters, renamed))


def pattern_parameter(description: str) -> Mapping[str, Any]:
    """Return the schema of a regular expression or a glob pattern."""
    return {"type": "string", "description": description, "minLength": 1, "maxLength": MAXIMUM_PATTERN_LENGTH}


def path_parameter(description: str) -> Mapping[str, Any]:
    """Return the schema of a path argument."""
    return {"type": "string", "description": description, "minLength": 1}


def _object(tool: str, path: str, schema: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties", {}))
    required: tuple[str, ...] = tuple(schema.get("required", ()))
    for name in required:
        if values.get(name) is None:
            raise _failure(tool, f"{path}{name}", _expected(properties[name]), None)
    # Models send an empty string for optional arguments that they do not use.
    sent = {name: value for name, value in values.items() if name in required or value not in (None, "")}
    return {
        name: _checked(tool, f"{path}{name}", properties[name], value)
        for name, value in sent.items()
        if name in properties
    }


def _checked(tool: str, path: str, schema: Mapping[str, Any], value: Any) -> Any:
    match schema["type"], value:
        case "string", str():
            _require_text(tool, path, value)
            fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        case "boolean", bool():
            fits = True
        case "integer", int() | float() if not isinstance(value, bool) and value == value // 1:
            # Some providers send every number as a floating-point one.
            value = int(value)
            fits = schema.get("minimum", value) <= value <= schema.get("maximum", value)
        case "array", list() | tuple():
            items = cast("list[Any]", value)
            fits = len(items) >= schema.get("minItems", 0)
            value = [_checked(tool, f"{path}[{index}]", schema["items"], item) for index, item in enumerate(items)]
        case "object", Mapping():
            return _object(tool, f"{path}.", schema, cast("Mapping[str, Any]", value))
        case _:
            fits = False
    if not fits:
        raise _failure(tool, path, _expected(schema), value)
    return value


def _require_text(tool: str, path: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        what = f"U+{ord(value[error.start]):04X} at offset {error.start}, half of a surrogate pair"
        raise ToolFailure(f"{tool}: {path}: expected Unicode text, received {what}", INVALID_ARGUMENTS) from error


def _expected(schema: Mapping[str, Any]) -> str:
    kind = {"string": "a string", "boolean": "true or false", "integer": "a whole number", "array": "an array"}
    text = kind.get(schema["type"], "an object")
    if schema.get("minLength") or schema.get("minItems"):
        text = text.replace("a string", "a non-empty string").replace("an array", "a non-empty array")
    if "maxLength" in schema:
        text += f" of at most {schema['maxLength']} characters"
    if "minimum" in schema:
        text += f" of {schema['minimum']} or more"
    if "maximum" in schema:
        text += f", at most {schema['maximum']}"
    if schema["type"] == "array":
        return text + (" of objects" if schema["items"]["type"] == "object" else " of strings")
    return text


def _failure(tool: str, path: str, expected: str, received: object) -> ToolFailure:
    came = "nothing" if received is None else f"{type(received).__name__} {received!r}"
    if len(came) > 80:
        came = came[:77] + "..."
    return ToolFailure(f"{tool}: {path}: expected {expected}, received {came}", INVALID_ARGUMENTS)
