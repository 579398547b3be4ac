"""Custom tools: Python functions of the user that a companion offers to every attached agent CLI.

A tool has the name of the function, its docstring as description, and a schema from the type hints. An exception
becomes an error result and never ends the companion. Tools that belong to the agent rather than to the editor are
better offered by an MCP server. Pydantic is loaded with the first schema, not before.
"""

import asyncio
import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
    runtime_checkable,
)

from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_content import ToolContent
from isthmus.ide.mcp.tool_names import COMPANION_TOOLS
from isthmus.record import record
from isthmus.runtime.threads import in_thread
from isthmus.text.visible import with_ellipsis

if TYPE_CHECKING:
    from pydantic import BaseModel

DEFAULT_TIMEOUT_SECONDS = 60.0
MAXIMUM_TOOLS = 100
MAXIMUM_ERROR_CHARACTERS = 2000
_NAME = re.compile("[A-Za-z0-9_-]{1,64}")

_log = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])


class CustomToolError(IsthmusError):
    """A custom tool that cannot be offered as declared; the text names it and explains what to change."""


class _EndedError(Exception):
    """A call of ``sys.exit`` in a tool, which must not end the companion."""


@record
class Image:
    """Image as the result of a tool, or in a list of results; ``data`` is the file's bytes."""

    data: bytes
    mime_type: str = "image/png"


@dataclass(frozen=True)
class CustomTool:
    """One custom tool; ``timeout`` is in seconds."""

    name: str
    description: str
    function: Callable[..., Any]
    timeout: float

    @cached_property
    def listed(self) -> ToolDefinition:
        """Entry in ``tools/list``.

        Raises:
            CustomToolError: a type hint has no JSON Schema.
        """
        from pydantic.errors import PydanticUserError
        from pydantic.json_schema import GenerateJsonSchema

        class Schema(GenerateJsonSchema):
            def field_title_should_be_set(self, schema: Any) -> bool:
                return False

        try:
            schema = self._arguments.model_json_schema(schema_generator=Schema)
        except PydanticUserError as error:
            raise self._error(f"a type hint has no JSON Schema: {_first_line(error.message)}") from error
        schema.pop("title", None)
        return ToolDefinition(self.name, self.description, schema)

    async def call(self, arguments: JsonObject) -> CallToolResult:
        """Run the tool; a failure or a timeout is returned as an error result."""
        from pydantic import ValidationError

        try:
            model = self._arguments.model_validate(dict(arguments))
        except ValidationError as error:
            return CallToolResult.error(f"{self.name}: {_problems(error)}")
        given = {
            str(field.alias): getattr(model, name)
            for name, field in type(model).model_fields.items()
            if name in model.model_fields_set
        }
        try:
            return _result_of(await self._run(given))
        except TimeoutError:
            still = "" if inspect.iscoroutinefunction(self.function) else "; it still runs, and its result is dropped"
            return CallToolResult.error(f"{self.name}: not done after {self.timeout:g} s{still}")
        except Exception as error:  # the tool is the user's code
            _log.warning("The custom tool %s failed", self.name, exc_info=True)
            text = f"{self.name}: {type(error).__name__}: {error}"
            return CallToolResult.error(with_ellipsis(text, MAXIMUM_ERROR_CHARACTERS))

    async def _run(self, given: Mapping[str, Any]) -> object:
        def call() -> Any:
            try:
                return self.function(**given)
            except SystemExit as error:
                raise _EndedError("it tried to end the program") from error

        async def await_result(result: Any) -> object:
            try:
                return await result
            except SystemExit as error:
                raise _EndedError("it tried to end the program") from error

        is_coroutine = inspect.iscoroutinefunction(self.function)
        result = call() if is_coroutine else await in_thread(call, self.timeout)
        if not inspect.isawaitable(result):
            return result
        async with asyncio.timeout(self.timeout):
            return await await_result(result)

    @cached_property
    def _arguments(self) -> "type[BaseModel]":
        """Pydantic model of the parameters, whose names are aliases: a parameter may be called ``json`` or ``_x``."""
        from pydantic import ConfigDict, Field, create_model
        from pydantic.errors import PydanticUserError

        try:
            hints = get_type_hints(self.function, include_extras=True)
        except Exception as error:  # hints may be any expression
            raise self._error(f"its type hints cannot be read: {error}") from error
        fields: dict[str, Any] = {}
        for index, parameter in enumerate(inspect.signature(self.function).parameters.values()):
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise self._error(f"expected only parameters that can be given by name, received {parameter}")
            hint = hints.get(parameter.name, Any)
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[f"argument_{index}"] = (
                hint,
                Field(default, alias=parameter.name, description=_description(hint)),
            )
        try:
            return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)
        except PydanticUserError as error:
            raise self._error(f"a type hint cannot be an argument: {_first_line(error.message)}") from error

    def _error(self, text: str) -> CustomToolError:
        return CustomToolError(f"custom tool {self.name}: {text}")


@runtime_checkable
class ToolEditor(Protocol):
    """An editor in which the user can declare tools, too, in its own language."""

    @property
    def user_tools(self) -> tuple[ToolDefinition, ...]:
        """Tools that are declared now."""
        ...

    async def call_user_tool(self, name: str, arguments: JsonObject) -> str:
        """Run a tool and return its text. There is no deadline: the caller cancels.

        Raises:
            EditorError: the tool failed, or the editor has quit.
        """
        ...


class ToolRegistry:
    """Custom tools of one companion by name, and those that the user declared in ``editor``."""

    def __init__(self, editor: object = None) -> None:
        self._tools: dict[str, CustomTool] = {}
        self._editor = editor if isinstance(editor, ToolEditor) else None

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        # Each call of a tool comes here, and most editors declare none.
        return name in self._tools or (
            self._editor is not None and any(tool.name == name for tool in self._of_editor())
        )

    def _of_editor(self) -> list[ToolDefinition]:
        """Return the editor's tools, without those whose name is invalid or belongs to another tool."""
        declared = self._editor.user_tools if self._editor is not None else ()
        taken = COMPANION_TOOLS | self._tools.keys()
        found = [tool for tool in declared if _NAME.fullmatch(tool.name) and tool.name not in taken]
        return found[: max(0, MAXIMUM_TOOLS - len(self._tools))]

    @overload
    def tool(self, function: Function) -> Function: ...

    @overload
    def tool(
        self, *, name: str | None = None, description: str | None = None, timeout: float = DEFAULT_TIMEOUT_SECONDS
    ) -> Callable[[Function], Function]: ...

    def tool(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> Function | Callable[[Function], Function]:
        """Register a function as a tool (decorator), and return it unchanged.

        ``name`` and ``description`` replace the function's name and docstring; ``timeout`` is in seconds. A plain
        function runs in a thread, so it may block.

        Raises:
            CustomToolError: the name is taken or invalid, the description is missing, or there are too many tools.
        """

        def add(function: Function) -> Function:
            self._add(function, name, description, timeout)
            return function

        return add if function is None else add(function)

    def _add(self, function: Callable[..., Any], name: str | None, description: str | None, timeout: float) -> None:
        chosen = name or str(getattr(function, "__name__", function))
        problem: str | None = None
        text = description or inspect.getdoc(function)
        if not _NAME.fullmatch(chosen):
            problem = "expected a name of 1 to 64 letters, digits, _ and -; give one: @companion.tool(name=...)"
        elif chosen in COMPANION_TOOLS:
            problem = "a tool of the companion itself has this name; give another one: @companion.tool(name=...)"
        elif chosen in self._tools:
            problem = "another tool has this name already"
        elif not text:
            problem = "expected a docstring: agents choose tools by what it says"
        elif not timeout > 0:
            problem = f"expected timeout as seconds above 0, received {timeout}"
        elif len(self._tools) >= MAXIMUM_TOOLS:
            problem = f"there are {MAXIMUM_TOOLS} custom tools already"
        if problem is not None or text is None:
            raise CustomToolError(f"custom tool {with_ellipsis(chosen, 80)}: {problem}")
        self._tools[chosen] = CustomTool(chosen, text, function, timeout)

    def listed(self) -> tuple[ToolDefinition, ...]:
        """Return the entries of all tools in ``tools/list``, in the order of their declaration.

        Raises:
            CustomToolError: a type hint cannot be an argument.
        """
        return (*(tool.listed for tool in self._tools.values()), *self._of_editor())

    async def call(self, name: str, arguments: JsonObject) -> CallToolResult:
        """Run a tool of this registry; any failure is an error result."""
        if name in self._tools:
            return await self._tools[name].call(arguments)
        schema = next((tool.input_schema for tool in self._of_editor() if tool.name == name), None)
        if self._editor is None or schema is None:
            return CallToolResult.error(f"{name}: it is not offered any more")
        if (problem := _mismatch(schema, arguments)) is not None:
            return CallToolResult.error(f"{name}: {problem}")
        try:
            async with asyncio.timeout(DEFAULT_TIMEOUT_SECONDS):
                return _result_of(await self._editor.call_user_tool(name, arguments))
        except TimeoutError:
            return CallToolResult.error(f"{name}: no result after {DEFAULT_TIMEOUT_SECONDS:g} s")
        except IsthmusError as error:
            return CallToolResult.error(with_ellipsis(f"{name}: {error}", MAXIMUM_ERROR_CHARACTERS))


def _mismatch(schema: JsonObject, arguments: JsonObject) -> str | None:
    """Return why arguments do not match a JSON Schema of the user; None if they do."""
    from isthmus.encoding.json_schema import draft_2020_12

    try:
        found = next(draft_2020_12()(schema).iter_errors(dict(arguments)), None)
    except Exception as error:  # the schema is the user's
        return f"its schema cannot be used: {with_ellipsis(str(error), MAXIMUM_ERROR_CHARACTERS)}"
    return None if found is None else with_ellipsis(str(found.message), MAXIMUM_ERROR_CHARACTERS)


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


def _description(hint: object) -> str | None:
    """Return the description in ``Annotated[str, "description"]``; None if there is none."""
    if get_origin(hint) is not Annotated:
        return None
    return next((extra for extra in get_args(hint)[1:] if isinstance(extra, str)), None)


def _problems(error: Any) -> str:
    """Return the problems of the arguments, one clause each."""
    found = [
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return with_ellipsis("; ".join(found), MAXIMUM_ERROR_CHARACTERS)


def _result_of(value: object) -> CallToolResult:
    content = ToolContent()
    parts = cast("Iterable[object]", value) if _has_images(value) else (value,)
    for part in parts:
        match part:
            case None:
                pass
            case str():
                content.add_text(part)
            case Image():
                content.add_image(part.data, part.mime_type)
            case _:
                from pydantic_core import to_json

                content.add_text(to_json(part).decode())
    return content.result()


def _has_images(value: object) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    return any(isinstance(part, Image) for part in cast("Iterable[object]", value))
