"""Reads values of settings files.

Each function takes the files that may set a key, in the order in which they count, and raises SettingsError for a
value of another form.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar, cast

from isthmus.errors import DecodeError
from isthmus.sandbox.settings import CommandSandbox, decode_command_sandbox
from isthmus.settings.rules import ReadOnlyTools
from isthmus.settings.settings_file import SettingsError, SettingsSource
from isthmus.text.units import AmountError, parse_size

T = TypeVar("T", str, int, bool)

_SANDBOX_KEYS = ("sandbox", "sandboxAllowedPaths", "sandboxNetworkAccess")


def first(sources: Sequence[SettingsSource], key: str, kind: type[T]) -> T | None:
    """Return the first value, which must be of type `kind`."""
    for source in sources:
        value = source.get(key)
        if value is None:
            continue
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            expected = {str: "a string", int: "a whole number", bool: "true or false"}[kind]
            raise SettingsError(f"{source.path}: {key} is {value!r:.200}; expected {expected}")
        return value
    return None


def choice(sources: Sequence[SettingsSource], key: str, choices: Sequence[str]) -> str | None:
    """Return the first value, which must be one of `choices`."""
    for source in sources:
        value = source.get(key)
        if value is not None and value not in choices:
            expected = " or ".join(f'"{choice}"' for choice in choices)
            raise SettingsError(f"{source.path}: {key} is {value!r:.200}; expected {expected}")
        if value is not None:
            return str(value)
    return None


def share(sources: Sequence[SettingsSource], key: str) -> float | None:
    """Return the first value, which must be a share: above 0, at most 1."""
    for source in sources:
        value = source.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise SettingsError(f"{source.path}: {key} is {value!r:.200}; expected a number above 0, at most 1")
        return float(value)
    return None


def read_only(sources: Sequence[SettingsSource], key: str) -> ReadOnlyTools:
    """Return the rule for tools that only read: ``allow`` or ``ask``, or an object with one of them for each server."""
    words = {"allow": True, "ask": False}
    for source in sources:
        value = source.get(key)
        if value is None:
            continue
        rules = cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {"": value}
        for name, rule in rules.items():
            if not isinstance(rule, str) or rule not in words:
                where = f"{key}.{name:.200}" if name else key
                raise SettingsError(f'{source.path}: {where} is {rule!r:.200}; expected "allow" or "ask"')
        if isinstance(value, Mapping):
            return ReadOnlyTools(servers={name: words[str(rule)] for name, rule in rules.items()})
        return ReadOnlyTools(everywhere=words[str(value)])
    return ReadOnlyTools()


def size(sources: Sequence[SettingsSource], key: str) -> int | None:
    """Return a number of bytes, given as a number, as text with a unit, or as "none", which is 0."""
    for source in sources:
        value = source.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if isinstance(value, str):
            try:
                return 0 if value == "none" else parse_size(value)
            except AmountError as error:
                raise SettingsError(f'{source.path}: {key}: {error}; "none" means no maximum') from error
        if value is not None:
            raise SettingsError(f'{source.path}: {key} is {value!r:.200}; expected a size, e.g. "500MB", or "none"')
    return None


def file_names(sources: Sequence[SettingsSource], key: str) -> tuple[str, ...]:
    """Return a file name, or several; without folders, because such files are searched in several folders."""
    for source in sources:
        value: object = source.get(key)
        if value is None:
            continue
        names = cast("list[object]", [value] if isinstance(value, str) else value)
        if not isinstance(value, (str, list)) or not all(isinstance(name, str) and _is_name(name) for name in names):
            raise SettingsError(
                f"{source.path}: {key} is {value!r:.200}; expected a file's name without folders, or a list"
            )
        return tuple(str(name) for name in names)
    return ()


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and not set(name) & set("/\\\0")


def sandbox(sources: Sequence[SettingsSource]) -> CommandSandbox:
    """Return the sandbox of the first file that has any key of the sandbox."""
    for source in sources:
        tools = source.get("tools")
        if isinstance(tools, Mapping) and not tools.keys().isdisjoint(_SANDBOX_KEYS):
            try:
                return decode_command_sandbox(cast("Mapping[str, object]", tools), f"{source.path}: tools")
            except DecodeError as error:
                raise SettingsError(str(error)) from error
    return CommandSandbox()


def strings(sources: Sequence[SettingsSource], key: str) -> tuple[str, ...]:
    """Return the first list of strings."""
    return next((entries for _, entries in lists(sources, key)), ())


def lists(sources: Sequence[SettingsSource], key: str) -> Iterator[tuple[SettingsSource, tuple[str, ...]]]:
    """Yield each file that has such a list of strings, and the list."""
    for source in sources:
        for name, value in source.named(key):
            if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
                raise SettingsError(f"{source.path}: {name} is {value!r:.200}; expected a list of strings")
            yield source, tuple(cast("list[str]", value))


def first_enabled(sources: Sequence[SettingsSource], key: str) -> SettingsSource | None:
    """Return the first file in which a switch is on."""
    return next((source for source in sources if first([source], key, bool)), None)


def switched_off(sources: Sequence[SettingsSource], key: str) -> tuple[str, ...]:
    """Return the names below a key whose own ``enabled`` is false in any file.

    Raises:
        SettingsError: the key is not an object of objects.
    """
    off: list[str] = []
    for source in sources:
        if (named := source.get(key)) is None:
            continue
        values = list(cast("Mapping[str, object]", named).items()) if isinstance(named, Mapping) else [("", named)]
        for name, value in values:
            if not isinstance(value, Mapping):
                raise SettingsError(f"{source.path}: {key} is {named!r:.200}; expected an object of objects")
            if cast("Mapping[str, object]", value).get("enabled") is False:
                off.append(name)
    return tuple(dict.fromkeys(off))


def is_off(sources: Sequence[SettingsSource], key: str) -> bool:
    """Return whether a file sets a key to false; no other file can lift that.

    Raises:
        SettingsError: a value is neither true nor false.
    """
    return any(first((source,), key, bool) is False for source in sources)
