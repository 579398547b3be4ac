"""Validation against a server's schemas: of the arguments of a call, and of the structured content of its result.

A schema is untrusted. Its patterns are not matched, because that could take forever, and nothing is fetched for it. An
invalid schema, or one that takes too many steps, accepts every value. Not here: schemas for providers, see
:mod:`isthmus.mcp_host.catalogue.schema`.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias, cast

from isthmus.encoding.json_schema import draft_2020_12

MAXIMUM_VALUES = 5_000
"""Maximum number of values in structured content that is checked; larger content is accepted unchecked."""
MAXIMUM_STEPS = 50_000
"""Maximum number of steps (keywords and members of enumerations) of one check. A short schema with references can
take many."""

Check: TypeAlias = Callable[[Any, Any, Any, Any], Any]
"""The library's function for one keyword. Takes the validator, the keyword's value, the checked value, the schema."""

_LEFT: ContextVar[int] = ContextVar("isthmus_schema_steps", default=MAXIMUM_STEPS)


class _TooManyStepsError(Exception):
    """A check takes too many steps."""


class SchemaCheck:
    """Validator for one schema. Create it only when it is needed: its library takes a while to import."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from referencing import Registry

        # An empty registry: the library's own would fetch the targets of references.
        self._validator: Any = _validators()(dict(schema), registry=cast("Any", Registry)())

    def validation_error(self, value: object) -> str | None:
        """Return where and why a value does not fit; None if it fits, or if the schema is invalid or takes too long."""
        _LEFT.set(MAXIMUM_STEPS)
        try:
            found = next(iter(self._validator.iter_errors(value)), None)
        except Exception:
            # Only the server can check against an invalid schema, such as one with a loop.
            return None
        if found is None:
            return None
        place = ".".join(str(part) for part in found.absolute_path)
        return f"{f'{place}: ' if place else ''}{found.message[:300]}"


def is_small(value: object) -> bool:
    """Return whether a JSON value is small enough to be checked."""
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
    """Return the library's validator class, which counts its steps and ignores patterns."""
    draft = draft_2020_12()
    from jsonschema import validators

    known = cast("Mapping[str, Check]", draft.VALIDATORS)
    counted = {keyword: _counted(check) for keyword, check in known.items()}
    ignored = {"pattern": _passes, "patternProperties": _passes}
    return cast("Any", validators).extend(draft, {**counted, **ignored})


def _counted(check: Check) -> Check:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        left = _LEFT.get() - 1 - (len(cast("list[object]", value)) if isinstance(value, list) else 0)
        if left < 0:
            raise _TooManyStepsError
        _LEFT.set(left)
        return check(validator, value, instance, schema)

    return checked


def _passes(*_: object) -> None:
    return None
