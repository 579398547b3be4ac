"""Docstrings of the public API: a function of more than four parameters describes each of them under ``Args:``."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

MODULES = (
    "isthmus",
    "isthmus.a2a.client.remote_agent",
    "isthmus.a2a.frameworks",
    "isthmus.a2a.hosting",
    "isthmus.agent.hosted",
    "isthmus.agent.part",
    "isthmus.client",
    "isthmus.companion",
    "isthmus.development_tool",
    "isthmus.ide.companion",
    "isthmus.ide.editor",
    "isthmus.ide.ide_protocol",
)
"""Modules from which other programs import; each answers for what it defines itself."""
MAXIMUM = 4
"""Maximum number of parameters that a sentence may describe."""


def functions_of(module: str) -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Yield the public functions, methods and constructors that a module defines, with their docstrings."""
    for name, value in vars(import_module(module)).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module:
            continue
        if inspect.isfunction(value):
            yield name, value, inspect.getdoc(value) or ""
        elif inspect.isclass(value):
            for member, method in vars(value).items():
                is_constructor = member == "__init__" and not dataclasses.is_dataclass(value)
                if inspect.isfunction(method) and (is_constructor or not member.startswith("_")):
                    documented = value if is_constructor else method
                    yield f"{name}.{member}", method, inspect.getdoc(documented) or ""


def parameters_of(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in {"self", "cls"}]


@pytest.mark.parametrize("module", MODULES)
def test_functions_of_many_parameters_describe_each(module: str) -> None:
    for name, function, docstring in functions_of(module):
        parameters = parameters_of(function)
        is_override = hasattr(function, "__override__")
        if len(parameters) <= MAXIMUM or is_override:
            continue
        described = re.findall(r"^    (\w+): ", docstring.partition("Args:\n")[2], re.MULTILINE)
        assert described == parameters, f"{module}.{name}"
