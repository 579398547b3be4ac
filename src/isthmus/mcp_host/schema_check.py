"""Values held against a server's schemas: the arguments of a call, and the structured content of its result.

A schema is a stranger's: its patterns are not matched, which could take for ever, nothing is fetched for it, and one
that is no valid schema holds nothing back. Deliberately not here: schemas as providers want them
(:mod:`isthmus.mcp_host.schema`).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

MAXIMUM_VALUES = 5_000
"""Values in a structured content that is looked at; a larger one is taken as it is."""


class SchemaCheck:
    """Holds values against one schema. Made when it is first needed: its library takes a while to import."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from referencing import Registry

        # A registry of its own: the library's would fetch what a reference leads to.
        self._validator: Any = _validators()(dict(schema), registry=cast("Any", Registry)())

    def misfit(self, value: object) -> str | None:
        """Where a value does not fit, and why; None when it fits, or the schema is no valid one."""
        try:
            found = next(iter(self._validator.iter_errors(value)), None)
        except Exception:
            # A schema that is no valid one, such as one with a loop, is the server's to hold to.
            return None
        if found is None:
            return None
        place = ".".join(str(part) for part in found.absolute_path)
        return f"{f'{place}: ' if place else ''}{found.message[:300]}"


def is_small(value: object) -> bool:
    """Whether a JSON value has few enough values in it to be looked at."""
    waiting, count = [value], 0
    while waiting:
        item = waiting.pop()
        count += 1
        if isinstance(item, dict):
            waiting.extend(cast("dict[str, object]", item).values())
        elif isinstance(item, list):
            waiting.extend(cast("list[object]", item))
        if count + len(waiting) > MAXIMUM_VALUES:
            return False
    return True


@cache
def _validators() -> Any:
    """The library's class of validators, without what is not looked at."""
    from jsonschema import Draft202012Validator, validators

    ignored = {"pattern": _passes, "patternProperties": _passes}
    return cast("Any", validators).extend(Draft202012Validator, ignored)


def _passes(*_: object) -> None:
    return None
