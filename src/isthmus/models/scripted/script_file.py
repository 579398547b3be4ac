r"""The script of the scripted model: a YAML file, read into data. Every mistake is reported with line and column.

    name: practice                      # the name of the model
    chunk_characters: 24                # size of the pieces in which text is streamed
    chunk_delay: 0                      # seconds between two pieces
    price: 0                            # US dollars for a million tokens of any kind, or `unknown`
    scenarios:                          # the first whose `prompt` matches in the user's last prompt
      - prompt: '(?i)rename (?P<old>\w+)'
        repeat: false                   # true: the first reply follows the last one
        replies:                        # one for each message of the model since the prompt
          - thought: I will look for it.
            text: Looking for {{old}}.
            call: {name: grep_search, arguments: {pattern: '{{old}}', dir_path: '{{workspace}}'}}
          - alternatives:               # the first whose `when` is true, or without `when`
              - when: result matches (?P<file>\S+\.py)
                text: It is in {{file}}.
              - when: result failed
                text: I could not search.
                finish: other           # or stop, tool_calls, length, safety
              - steps: [{delay: 0.5}, {error: {kind: rate_limit, status: 429, retry_after: 1, times: 1}}, {text: No.}]

Steps are text, thought, call, error and delay (seconds), in the order of the file. An error with `times` passes after
that number of tries; without it, the error ends the turn. Texts and arguments may contain `{{workspace}}`,
`{{prompt}}`, `{{result}}`, the named groups of both expressions, and the numbered groups of `prompt`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from isthmus.errors import IsthmusError
from isthmus.files.atomic import read_regular
from isthmus.models.port.base import Finish, ModelErrorKind
from isthmus.record import record
from isthmus.text.money import parse_dollars
from isthmus.text.units import AmountError

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
MAXIMUM_BYTES = 1024 * 1024
"""Maximum size of a script in bytes; reading YAML takes about ten seconds per MiB."""
MAXIMUM_NODES = 200_000
"""Maximum number of values in a script; values repeated by an alias count each time."""
STEP_NAMES = ("text", "thought", "call", "error", "delay")
KNOWN_NAMES = frozenset({"workspace", "prompt", "result"})


class ScriptError(IsthmusError):
    """Mistake in a script; the text begins with FILE:LINE:COLUMN (1-based)."""


@record
class TextStep:
    """Step that sends visible text."""

    text: str


@record
class ThoughtStep:
    """Step that sends a thought."""

    text: str


@record
class CallStep:
    """Step that requests a tool call."""

    name: str
    arguments: Mapping[str, Any]


@record
class ErrorStep:
    """Step that fails: for ``times`` tries, or, with 0, for the whole turn. ``retry_after`` is in seconds."""

    kind: ModelErrorKind
    message: str
    status: int | None = None
    retry_after: float | None = None
    times: int = 0


@record
class DelayStep:
    """Step that waits."""

    seconds: float


Step: TypeAlias = TextStep | ThoughtStep | CallStep | ErrorStep | DelayStep


@record
class Condition:
    """Condition of an alternative: a pattern found in the results of the last calls, or a failed call."""

    result: re.Pattern[str] | None = None


@record
class Alternative:
    """The model's reply if the condition is true."""

    steps: tuple[Step, ...]
    condition: Condition | None = None
    finish: Finish | None = None


@record
class Scenario:
    """The model's replies to prompts of one kind, message by message."""

    prompt: re.Pattern[str]
    replies: tuple[tuple[Alternative, ...], ...]
    repeat: bool = False


@record
class Script:
    """A parsed script."""

    name: str
    scenarios: tuple[Scenario, ...]
    chunk_characters: int = 24
    chunk_delay: float = 0
    price: int | None = 0
    """Picodollars for a million tokens; None if it is not known."""


def read_script(path: Path) -> Script:
    """Return the script in a file.

    Raises:
        ScriptError: it cannot be read, or is not a script.
    """
    try:
        text = read_regular(path, MAXIMUM_BYTES).decode()
    except OSError as error:
        raise ScriptError(f"{path}:1:1: the script cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ScriptError(f"{path}:1:1: expected UTF-8, received other bytes at offset {error.start}") from error
    if "scenarios" not in text and text.strip():
        # Errors quote the text, which must not happen for a file that was never meant as a script.
        raise ScriptError(f"{path}:1:1: not a script: expected a mapping with `scenarios`")
    return parse_script(text, str(path))


def parse_script(text: str, file: str) -> Script:
    """Return the script in a text; ``file`` is its name in errors.

    Raises:
        ScriptError: it is not a script.
    """
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise ScriptError(f"{file}:1:1: expected a mapping with `scenarios`, received an empty file")
        _check_size(node, file)
        return _NodeReader(file).script(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "1:1" if mark is None else f"{mark.line + 1}:{mark.column + 1}"
        raise ScriptError(f"{file}:{where}: not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ScriptError(f"{file}:1:1: not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ScriptError(f"{file}:1:1: nested too deeply") from error


def _check_size(root: "Node", file: str) -> None:
    """Refuse a script that aliases make too large; an alias that contains itself would be endless."""
    waiting, count = [root], 0
    while waiting:
        children: Any = waiting.pop().value
        count += 1
        if count > MAXIMUM_NODES:
            raise ScriptError(f"{file}:1:1: more than {MAXIMUM_NODES} values; does an alias contain itself?")
        if isinstance(children, list):
            for child in cast("list[Any]", children):
                waiting += child if isinstance(child, tuple) else [child]


class _NodeReader:
    """Converter of YAML nodes, which have positions, to a script."""

    def __init__(self, file: str) -> None:
        self._file = file

    def script(self, node: "Node") -> Script:
        fields = self._fields(node, "a script", "scenarios", "name", "chunk_characters", "chunk_delay", "price")
        if "scenarios" not in fields:
            raise self._error(node, "expected `scenarios`")
        size = fields.get("chunk_characters")
        characters = 24 if size is None else self._whole(size, 1)
        delay = fields.get("chunk_delay")
        name = fields.get("name")
        return Script(
            Path(self._file).stem if name is None else self._text(name),
            tuple(self._scenario(item) for item in self._items(fields["scenarios"], "scenarios")),
            characters,
            0 if delay is None else self._number(delay),
            self._price(fields["price"]) if "price" in fields else 0,
        )

    def _price(self, node: "Node") -> int | None:
        expected = "US dollars for a million tokens, or unknown"
        text = self._scalar(node, expected, "int", "float", "str")
        try:
            return None if text == "unknown" else parse_dollars(text)
        except AmountError as error:
            raise self._error(node, f"expected {expected}, received {text!r}") from error

    def _scenario(self, node: "Node") -> Scenario:
        fields = self._fields(node, "a scenario", "prompt", "replies", "repeat")
        for name in ("prompt", "replies"):
            if name not in fields:
                raise self._error(node, f"a scenario needs `{name}`")
        prompt = self._pattern(fields["prompt"])
        names = KNOWN_NAMES | set(prompt.groupindex) | {str(number) for number in range(prompt.groups + 1)}
        replies = tuple(self._reply(item, names) for item in self._items(fields["replies"], "replies"))
        repeat = fields.get("repeat")
        return Scenario(prompt, replies, repeat is not None and self._boolean(repeat))

    def _reply(self, node: "Node", names: frozenset[str]) -> tuple[Alternative, ...]:
        fields = self._fields(node, "a reply", *STEP_NAMES, "steps", "alternatives", "finish", "when")
        if "alternatives" not in fields:
            return (self._alternative(node, names),)
        if others := [name for name in fields if name not in ("alternatives",)]:
            raise self._error(node, f"a reply with `alternatives` cannot also have `{others[0]}`")
        return tuple(self._alternative(item, names) for item in self._items(fields["alternatives"], "alternatives"))

    def _alternative(self, node: "Node", names: frozenset[str]) -> Alternative:
        fields = self._fields(node, "a reply", *STEP_NAMES, "steps", "finish", "when")
        condition = self._condition(fields["when"]) if "when" in fields else None
        if condition is not None and condition.result is not None:
            names |= set(condition.result.groupindex)
        finish = self._one_of(fields["finish"], Finish) if "finish" in fields else None
        steps = list(self._steps(node, names))
        if "steps" in fields:
            if steps:
                raise self._error(fields["steps"], "expected the steps either under `steps` or in the reply itself")
            for item in self._items(fields["steps"], "steps"):
                self._fields(item, "a step", *STEP_NAMES)
                steps += self._steps(item, names)
        if not steps:
            raise self._error(node, f"a reply needs at least one of {', '.join(STEP_NAMES)}")
        return Alternative(tuple(steps), condition, finish)

    def _steps(self, node: "Node", names: frozenset[str]) -> Iterator[Step]:
        for key, value in cast("MappingNode", node).value:
            self._check_placeholders(value, names)
            match key.value:
                case "text":
                    yield TextStep(self._text(value))
                case "thought":
                    yield ThoughtStep(self._text(value))
                case "delay":
                    yield DelayStep(self._number(value))
                case "call":
                    yield self._call(value)
                case "error":
                    yield self._failure(value)
                case _:
                    pass

    def _call(self, node: "Node") -> CallStep:
        fields = self._fields(node, "a call", "name", "arguments")
        if "name" not in fields:
            raise self._error(node, "a call needs `name`")
        arguments: object = self._value(fields["arguments"]) if "arguments" in fields else {}
        if not isinstance(arguments, Mapping):
            raise self._error(fields["arguments"], "expected a mapping of arguments")
        return CallStep(self._text(fields["name"]), cast("Mapping[str, Any]", arguments))

    def _failure(self, node: "Node") -> ErrorStep:
        fields = self._fields(node, "an error", "kind", "message", "status", "retry_after", "times")
        if "kind" not in fields:
            raise self._error(node, "an error needs `kind`")
        kind = self._one_of(fields["kind"], ModelErrorKind)
        return ErrorStep(
            kind,
            self._text(fields["message"]) if "message" in fields else f"scripted failure: {kind.value}",
            self._whole(fields["status"], 100) if "status" in fields else None,
            self._number(fields["retry_after"]) if "retry_after" in fields else None,
            self._whole(fields["times"], 0) if "times" in fields else 0,
        )

    def _condition(self, node: "Node") -> Condition:
        text = self._text(node)
        if text == "result failed":
            return Condition()
        if not text.startswith("result matches "):
            raise self._error(node, f"expected `result matches REGEX` or `result failed`, received {text!r}")
        return Condition(self._pattern(node, text.removeprefix("result matches ")))

    def _check_placeholders(self, node: "Node", names: frozenset[str]) -> None:
        from yaml.nodes import MappingNode, ScalarNode, SequenceNode

        if isinstance(node, ScalarNode):
            for match in PLACEHOLDER.finditer(node.value):
                if match[1] not in names:
                    expected = ", ".join(sorted(names))
                    raise self._error(node, f"unknown placeholder {match[0]}; expected one of {expected}")
        elif isinstance(node, SequenceNode):
            for item in node.value:
                self._check_placeholders(item, names)
        elif isinstance(node, MappingNode):
            for _, value in node.value:
                self._check_placeholders(value, names)

    def _fields(self, node: "Node", what: str, *names: str) -> "dict[str, Node]":
        from yaml.nodes import MappingNode

        if not isinstance(node, MappingNode):
            raise self._error(node, f"expected {what}, a mapping with {', '.join(names)}")
        fields: dict[str, Node] = {}
        for key, value in node.value:
            if key.value not in names:
                raise self._error(key, f"{what} has no `{key.value}`; expected one of {', '.join(names)}")
            if key.value in fields:
                raise self._error(key, f"`{key.value}` occurs twice")
            fields[key.value] = value
        return fields

    def _items(self, node: "Node", what: str) -> "list[Node]":
        from yaml.nodes import SequenceNode

        if not isinstance(node, SequenceNode) or not node.value:
            raise self._error(node, f"expected `{what}` to be a list with at least one item")
        return cast("list[Node]", node.value)

    def _scalar(self, node: "Node", expected: str, *kinds: str) -> str:
        from yaml.nodes import ScalarNode

        if not isinstance(node, ScalarNode) or (kinds and node.tag.rpartition(":")[2] not in kinds):
            received = (
                f"{node.value!r}"
                if isinstance(node, ScalarNode)
                else f"a {type(node).__name__.removesuffix('Node').lower()}"
            )
            raise self._error(node, f"expected {expected}, received {received}")
        return str(node.value)

    def _text(self, node: "Node") -> str:
        return self._scalar(node, "a text")

    def _number(self, node: "Node") -> float:
        text = self._scalar(node, "a number of seconds", "int", "float")
        number = _parse(text, float)
        if number is None or not 0 <= number < 1e6:
            raise self._error(node, f"expected a number of seconds, not negative, received {text!r}")
        return number

    def _whole(self, node: "Node", least: int) -> int:
        text = self._scalar(node, "a whole number", "int")
        number = _parse(text, int)
        if number is None or number < least:
            raise self._error(node, f"expected a whole number from {least} on, received {text!r}")
        return number

    def _boolean(self, node: "Node") -> bool:
        return self._scalar(node, "true or false", "bool").lower() in ("true", "yes", "on")

    def _one_of(self, node: "Node", kind: type[Finish] | type[ModelErrorKind]) -> Any:
        text = self._text(node)
        if text not in tuple(kind):
            raise self._error(node, f"expected one of {', '.join(kind)}, received {text!r}")
        return kind(text)

    def _pattern(self, node: "Node", expression: str | None = None) -> re.Pattern[str]:
        text = self._text(node) if expression is None else expression
        try:
            return re.compile(text)
        except re.error as error:
            raise self._error(node, f"{text!r} is not a regular expression: {error}") from error

    def _value(self, node: "Node") -> Any:
        """Return the JSON value of a node; a YAML date stays a text."""
        from yaml.nodes import MappingNode, ScalarNode, SequenceNode

        if isinstance(node, MappingNode):
            return {self._text(key): self._value(value) for key, value in node.value}
        if isinstance(node, SequenceNode):
            return [self._value(item) for item in node.value]
        text = str(cast("ScalarNode", node).value)
        match node.tag.rpartition(":")[2]:
            case "null":
                return None
            case "bool":
                return self._boolean(node)
            case "int":
                return text if (number := _parse(text, int)) is None else number
            case "float":
                return text if (number := _parse(text, float)) is None else number
            case _:
                return text

    def _error(self, node: "Node", problem: str) -> ScriptError:
        mark = node.start_mark
        return ScriptError(f"{self._file}:{mark.line + 1}:{mark.column + 1}: {problem}")


def _parse(text: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        return None
