"""The decorator for custom tools: ``from isthmus import companion``, then ``@companion.tool`` on a function.

The file is given to ``isthmus companion --tools FILE.py`` (docs/how-to/companion-tools.md). A program that runs a
companion itself decorates with :meth:`isthmus.ide.companion.Companion.tool` instead.
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from isthmus.ide.mcp.custom_tools import DEFAULT_TIMEOUT_SECONDS, Image
from isthmus.ide.mcp.tool_files import collecting

__all__ = ["Image", "tool"]

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def tool(function: Function) -> Function: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, timeout: float = DEFAULT_TIMEOUT_SECONDS
) -> Callable[[Function], Function]: ...


def tool(
    function: Function | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
) -> Function | Callable[[Function], Function]:
    """Offer a function to every agent that is attached to the companion; the function itself stays as it is.

    ``name`` and ``description`` take the place of the function's name and docstring; ``timeout`` in seconds.

    Raises:
        CustomToolError: the name is not free, or there is no description.
    """
    decorate = collecting().tool(name=name, description=description, timeout=timeout)
    return decorate if function is None else decorate(function)
