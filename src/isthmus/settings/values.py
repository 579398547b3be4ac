"""Readers of settings: the form of a value, and how the values of several files become one. Pure.

A :data:`Kind` reads the value of one file. A :class:`Reader` makes one value of all files that may set a key, for
example ``first(choice("low", "high"))``. :mod:`isthmus.settings.keys` names the reader of each key.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeGuard, TypeVar, cast

from isthmus.encoding.json_shapes import as_list, as_object, is_object
from isthmus.errors import DecodeError
from isthmus.record import record
from isthmus.sandbox.settings import CommandSandbox, decode_command_sandbox
from isthmus.settings.model_setting import ModelSetting
from isthmus.settings.rules.rules import ReadOnlyTools
from isthmus.settings.settings_file import Owner, SettingsError, SettingsSource
from isthmus.text.money import parse_dollars
from isthmus.text.units import AmountError, parse_size, parse_wait

if TYPE_CHECKING:
    from decimal import Decimal

LARGEST_WINDOW = 100_000_000
"""Maximum context window in tokens that the settings can state."""
V = TypeVar("V")
T_co = TypeVar("T_co", covariant=True)

Kind: TypeAlias = Callable[[object, str], V]
"""Function that returns a value of a file in the form that the program uses.

It raises SettingsError for a value of another form. The second argument, the file and the name of the key in it, begins
the text of the error.
"""


class Merge(Enum):
    """Rule by which the values of several files become one; its value is the word for it in the documents."""

    FIRST = "first"
    """The first file that has the key counts: system, project, user, system defaults."""
    ALL = "all"
    """Every file counts, and each can only forbid more."""
    APART = "first; a project's for its own"
    """The first file that has the key counts, but a project's file only for what that file itself contains."""
    MEMBERS = "first for each name"
    """The names of every file count, and for each name the first file that has it."""


@record
class Reader(Generic[T_co]):
    """Rule by which the files that may set a key become one value.

    Attributes:
        read: function that takes the files, in the order in which they count, and the key. It returns the default if no
            file has the key, and raises SettingsError.
        merge: which of the files count.
        together: keys that are read together, from the first file that has one of them; empty for a key by itself.
    """

    read: Callable[[Sequence[SettingsSource], str], T_co]
    merge: Merge
    together: tuple[str, ...] = ()


def text(value: object, where: str) -> str:
    """Return any text."""
    if not isinstance(value, str):
        raise _refusal(value, where, "a string")
    return value


def flag(value: object, where: str) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise _refusal(value, where, "true or false")
    return value


def opposite(value: object, where: str) -> bool:
    """Return the opposite of a truth value, for a key that switches off what a field of `Settings` has on."""
    return not flag(value, where)


def maximum(value: object, where: str) -> int | None:
    """Return a whole number; None for 0."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _refusal(value, where, "a whole number")
    return value or None


def choice(*choices: str) -> Kind[str]:
    """Return the kind of texts that are one of `choices`."""
    expected = " or ".join(f'"{choice}"' for choice in choices)

    def read(value: object, where: str) -> str:
        if not isinstance(value, str) or value not in choices:
            raise _refusal(value, where, expected)
        return value

    return read


def share(value: object, where: str) -> float:
    """Return a share: above 0, at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise _refusal(value, where, "a number above 0, at most 1")
    return float(value)


def size(value: object, where: str) -> int:
    """Return a number of bytes, given as a number, as text with a unit, or as "none", which is 0."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str):
        try:
            return 0 if value == "none" else parse_size(value)
        except AmountError as error:
            raise SettingsError(f'{where}: {error}; "none" means no maximum') from error
    raise _refusal(value, where, 'a size, e.g. "500MB", or "none"')


def wait(value: object, where: str) -> float:
    """Return a time in seconds, given as text with a unit."""
    if isinstance(value, str):
        try:
            return parse_wait(value)
        except AmountError as error:
            raise SettingsError(f"{where}: {error}") from error
    raise _refusal(value, where, 'a time, e.g. "10m", or "0"')


def dollars(value: object, where: str) -> int | None:
    """Return an amount of money in picodollars, given as a number or text; None for "none"."""
    if value == "none":
        return None
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(AmountError):
            return parse_dollars(str(value))
    raise _refusal(value, where, 'US dollars, e.g. 2.50, or "none"')


def strings(value: object, where: str) -> tuple[str, ...]:
    """Return a list of strings."""
    if not _is_list_of_strings(value):
        raise _refusal(value, where, "a list of strings")
    return tuple(value)


def strings_or(default: tuple[str, ...]) -> Kind[tuple[str, ...]]:
    """Return the kind of lists of strings of which an empty one means `default`."""
    return lambda value, where: strings(value, where) or default


def file_names(value: object, where: str) -> tuple[str, ...]:
    """Return a file name, or several; without folders, because such files are searched in several folders."""
    names = [value] if isinstance(value, str) else value
    if not _is_list_of_strings(names) or not all(map(_is_name, names)):
        raise _refusal(value, where, "a file's name without folders, or a list")
    return tuple(names)


def _is_list_of_strings(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value))


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and not set(name) & set("/\\\0")


def read_only_tools(value: object, where: str) -> ReadOnlyTools:
    """Return the rule for tools that only read: ``allow`` or ``ask``, or an object with one of them for each server."""
    words = {"allow": True, "ask": False}
    rules = cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {"": value}
    for name, rule in rules.items():
        if not isinstance(rule, str) or rule not in words:
            raise _refusal(rule, f"{where}.{name:.200}" if name else where, '"allow" or "ask"')
    if isinstance(value, Mapping):
        return ReadOnlyTools(servers={name: words[str(rule)] for name, rule in rules.items()})
    return ReadOnlyTools(everywhere=words[str(value)])


def switched_off(value: object, where: str) -> tuple[str, ...]:
    """Return the names in an object of objects whose own ``enabled`` is false."""
    if not is_object(value) or not all(map(is_object, value.values())):
        raise _refusal(value, where, "an object of objects")
    return tuple(name for name, member in value.items() if as_object(member).get("enabled") is False)


def model_settings(value: object, where: str) -> tuple[ModelSetting, ...]:
    """Return facts about models by their names: ``contextWindow``, ``maxOutputTokens``, ``prices`` and ``media``."""
    if not is_object(value) or not all(map(is_object, value.values())):
        raise _refusal(value, where, "an object with an object for each model")
    return tuple(_model_setting(name, as_object(facts), f"{where}.{name:.200}") for name, facts in value.items())


_MODEL_FACTS = ("contextWindow", "maxOutputTokens", "prices", "media")
_MEDIA = ("image", "pdf", "audio", "video")
_PRICES = ("input", "output", "cacheRead", "cacheWrite")


def _model_setting(name: str, facts: Mapping[str, object], where: str) -> ModelSetting:
    _known_names(facts, where, _MODEL_FACTS)
    prices = facts.get("prices", {})
    if not is_object(prices) or (prices and not {"input", "output"} <= prices.keys()):
        raise _refusal(prices, f"{where}.prices", 'an object with "input" and "output"')
    _known_names(prices, f"{where}.prices", _PRICES)
    amounts = {name: _price(prices[name], f"{where}.prices.{name}") for name in _PRICES if name in prices}
    window, output = (_tokens(facts[name], f"{where}.{name}") if name in facts else None for name in _MODEL_FACTS[:2])
    media = _media(facts["media"], f"{where}.media") if "media" in facts else None
    return ModelSetting(name, window, output, *(amounts.get(key) for key in _PRICES), media=media)


def _media(value: object, where: str) -> frozenset[str]:
    kinds = as_list(value)
    if not isinstance(value, list) or any(kind not in _MEDIA for kind in kinds):
        raise _refusal(cast("object", value), where, f"a list of {', '.join(_MEDIA)}")
    return frozenset(map(str, kinds))


def _known_names(value: Mapping[str, object], where: str, names: Sequence[str]) -> None:
    if unknown := sorted(value.keys() - set(names)):
        raise SettingsError(f"{where} has {unknown[0]!r:.200}; expected only {', '.join(names)}")


def _tokens(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= LARGEST_WINDOW:
        raise _refusal(value, where, f"a number of tokens from 1 to {LARGEST_WINDOW:,}")
    return value


def _price(value: object, where: str) -> "Decimal":
    from decimal import Decimal, InvalidOperation  # only where a price is stated, since it loads slowly

    expected = 'US dollars for a million tokens, such as "1.25"'
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _refusal(value, where, expected)
    try:
        amount = Decimal(str(value))
    except InvalidOperation as error:
        raise _refusal(value, where, expected) from error
    if not amount.is_finite() or amount < 0:
        raise _refusal(value, where, expected)
    return amount


def _refusal(value: object, where: str, expected: str) -> SettingsError:
    return SettingsError(f"{where} is {value!r:.200}; expected {expected}")


def first(kind: Kind[V]) -> Reader[V | None]:
    """Return a reader of the first value; None without one."""
    return Reader(lambda sources, key: next(_values(sources, key, kind), None), Merge.FIRST)


def first_or(default: V, kind: Kind[V]) -> Reader[V]:
    """Return a reader of the first value; `default` without one."""
    return Reader(lambda sources, key: next(_values(sources, key, kind), default), Merge.FIRST)


def apart(default: V, kind: Kind[V]) -> Reader[V]:
    """Return a reader of the first value of the files outside of the project; `default` without one.

    The value of a project's file counts for that file alone, so it is read with what it is about.
    """

    def read(sources: Sequence[SettingsSource], key: str) -> V:
        others = [source for source in sources if source.owner is not Owner.PROJECT]
        return next(_values(others, key, kind), default)

    return Reader(read, Merge.APART)


def every(kind: Kind[V]) -> Reader[tuple[tuple[SettingsSource, V], ...]]:
    """Return a reader of all values, each with its file."""
    return Reader(lambda sources, key: tuple(_stated(sources, key, kind)), Merge.ALL)


def joined(kind: Kind[tuple[str, ...]]) -> Reader[tuple[str, ...]]:
    """Return a reader of the parts of all values, each once."""
    return Reader(
        lambda sources, key: tuple(dict.fromkeys(part for parts in _values(sources, key, kind) for part in parts)),
        Merge.ALL,
    )


unless_off = Reader(lambda sources, key: all(_values(sources, key, flag)), Merge.ALL)
"""Reader of a switch that is on unless a file switches it off; no other file can lift that."""
if_on = Reader(lambda sources, key: any(_values(sources, key, flag)), Merge.ALL)
"""Reader of a switch that is off unless a file switches it on; no other file can lift that."""
where_on = Reader(
    lambda sources, key: next((source for source, is_on in _stated(sources, key, flag) if is_on), None), Merge.ALL
)
"""Reader of the first file in which a switch is on; None without one."""


def elsewhere(merge: Merge) -> Reader[None]:
    """Return a reader of nothing, for a key whose values another module reads."""
    return Reader(lambda _sources, _key: None, merge)


def _sandbox(sources: Sequence[SettingsSource], _key: str) -> CommandSandbox:
    """Return the sandbox of the first file that has any key of the sandbox."""
    for source in sources:
        tools = source.get("tools")
        if isinstance(tools, Mapping) and any(key.removeprefix("tools.") in tools for key in _SANDBOX_KEYS):
            try:
                return decode_command_sandbox(cast("Mapping[str, object]", tools), f"{source.path}: tools")
            except DecodeError as error:
                raise SettingsError(str(error)) from error
    return CommandSandbox()


_SANDBOX_KEYS = ("tools.sandbox", "tools.sandboxAllowedPaths", "tools.sandboxNetworkAccess")
sandbox = Reader(_sandbox, Merge.FIRST, _SANDBOX_KEYS)
"""Reader of the sandbox around commands."""


def _values(sources: Sequence[SettingsSource], key: str, kind: Kind[V]) -> Iterator[V]:
    return (value for _, value in _stated(sources, key, kind))


def _stated(sources: Sequence[SettingsSource], key: str, kind: Kind[V]) -> Iterator[tuple[SettingsSource, V]]:
    """Yield the value of each file that has the key, also under its former name, each when it is asked for."""
    for source in sources:
        for name, value in source.named(key):
            yield source, kind(value, f"{source.path}: {name}")
