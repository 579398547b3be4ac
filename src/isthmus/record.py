"""Records: frozen dataclasses with slots that are quick to define.

A program loads hundreds of them before it does anything, and `dataclasses.dataclass(frozen=True, slots=True)` compiles
six functions for each (docs/decisions/0046). Here one is compiled, ``__init__``; the others are shared or closures. All
else is the standard library's: fields, defaults, inheritance, ``replace()``, ``fields()``, patterns of ``match``.

Not here: ``InitVar`` and ``order``; a class that needs them, or that can be changed, is an ordinary dataclass. A record
inherits from records and from classes without fields.
"""

import operator
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform, overload

_T = TypeVar("_T")
_set = object.__setattr__


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[_T], /) -> type[_T]: ...
@overload
def record(*, kw_only: bool = False) -> Callable[[type[_T]], type[_T]]: ...
def record(cls: type[_T] | None = None, /, *, kw_only: bool = False) -> type[_T] | Callable[[type[_T]], type[_T]]:
    """Return the class as a frozen dataclass with slots: equal by its fields, hashable if they are.

    Args:
        cls: the class; none if this is called with options, then a decorator is returned.
        kw_only: whether the fields of this class are given by their names alone.

    Raises:
        TypeError: the fields are wrong, as for a dataclass.
    """
    if cls is None:
        return lambda cls: _record(cls, kw_only)
    return _record(cls, kw_only)


def _record(cls: type[_T], kw_only: bool) -> type[_T]:
    written = set(cls.__dict__)
    described = cls.__doc__
    cls.__doc__ = described or "-"  # or dataclass() writes one from the signature, which it does not know yet
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
    made.__doc__ = described
    all_fields = fields(made)
    if "__init__" not in written:
        made.__init__ = _init(made, all_fields)
    for name, method in _methods(all_fields).items():
        if name not in written or (name == "__hash__" and cls.__dict__["__hash__"] is None):
            setattr(made, name, method)
    return cast("type[_T]", made)


def _init(cls: type, all_fields: Iterable[Field[Any]]) -> Callable[..., None]:
    """Compile ``__init__``; its defaults and the setters of the slots are variables of an enclosing function."""
    variables: dict[str, Any] = {"_missing": MISSING}
    parameters: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for each in all_fields:
        name, given = each.name, each.name
        parameter = name
        if each.default_factory is not MISSING:
            variables[f"_default_{name}"] = each.default_factory
            parameter = f"{name}=_missing"
            given = f"_default_{name}() if {name} is _missing else {name}" if each.init else f"_default_{name}()"
        elif each.default is not MISSING:
            variables[f"_default_{name}"] = each.default
            parameter = f"{name}=_default_{name}"
            given = name if each.init else f"_default_{name}"
        elif not each.init:
            continue  # __post_init__ sets it
        variables[f"_set_{name}"] = getattr(cls, name).__set__
        body.append(f"  _set_{name}(self, {given})")
        if not each.init:
            continue
        if not each.kw_only and parameter == name and any("=" in earlier for earlier in parameters):
            raise TypeError(f"non-default argument {name!r} follows default argument")
        (by_name if each.kw_only else parameters).append(parameter)
    if hasattr(cls, "__post_init__"):
        body.append("  self.__post_init__()")
    if by_name:
        parameters += ["*", *by_name]
    source = (
        f"def define({', '.join(variables)}):\n"
        f" def __init__({', '.join(['self', *parameters])}):\n" + "\n".join(body or ["  pass"]) + "\n return __init__"
    )
    module = sys.modules.get(cls.__module__)
    defined: dict[str, Any] = {}
    exec(source, module.__dict__ if module else {}, defined)  # noqa: S102 - of names of fields alone, as dataclasses do
    init = defined["define"](**variables)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in all_fields if each.init} | {"return": None}
    return init


def _methods(all_fields: Iterable[Field[Any]]) -> dict[str, Callable[..., Any]]:
    """Return what a record has beside ``__init__``, by name."""
    names = [each.name for each in all_fields]
    shown = [each.name for each in all_fields if each.repr]
    compared = _values([each.name for each in all_fields if each.compare])
    hashed = _values([each.name for each in all_fields if (each.compare if each.hash is None else each.hash)])

    @recursive_repr()
    def representation(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def equal(self: object, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    def hash_of(self: object) -> int:
        return hash(hashed(self))

    def state(self: object) -> list[Any]:
        return [getattr(self, name) for name in names]

    def set_state(self: object, state: Iterable[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            _set(self, name, value)

    return {
        "__repr__": representation,
        "__eq__": equal,
        "__hash__": hash_of,
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": state,
        "__setstate__": set_state,
    }


def _values(names: list[str]) -> Callable[[object], object]:
    """Return a getter of the values of some fields, as a tuple."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
