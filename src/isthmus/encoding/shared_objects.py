"""JSON objects that many values contain, such as the tools of all sessions of a server: encoded and decoded once."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

from isthmus.encoding.compact_json import finite_encoder

T = TypeVar("T")
_ENCODE = finite_encoder()


class SharedObjects(tuple[Mapping[str, Any], ...]):
    """JSON objects that many values contain. They are well-formed, and must not change.

    :mod:`isthmus.encoding.codec` takes them as they are.
    """

    @cached_property
    def text(self) -> str:
        """The compact JSON of the list."""
        return _ENCODE(self)

    @cached_property
    def _made(self) -> dict[object, tuple[Any, ...]]:
        return {}

    def each(self, make: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
        """Return the value that ``make`` returns for each object, made once for each function.

        Raises what the function raises.
        """
        found = self._made.get(make)
        if found is None:
            self._made[make] = found = tuple(map(make, self))
        return cast("tuple[T, ...]", found)
