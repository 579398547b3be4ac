"""Links fields of a record to the keys of which they are read (:mod:`isthmus.settings.keys`). Pure.

The type checker holds the type of a field against the key's reader.
"""

from collections.abc import Callable, Iterator
from dataclasses import field, fields
from typing import Any, TypeVar

from isthmus.record import record
from isthmus.settings.setting_key import SettingKey
from isthmus.settings.sources import Sources

T = TypeVar("T")


@record
class FieldKeys:
    """The keys of which a field is made; ``read`` is None if the loader makes its value."""

    keys: tuple[SettingKey[object], ...]
    read: Callable[[Sources], object] | None = None


def of(key: SettingKey[T], *more: SettingKey[T]) -> T:
    """Return a field with the value of a key. Those in `more` are read together with it."""
    return _field(key.read(()), FieldKeys((key, *more), lambda files: files.read(key)))


def all_of(*keys: SettingKey[bool]) -> bool:
    """Return a field that is true if every key is."""
    return _field(all(key.read(()) for key in keys), FieldKeys(keys, lambda files: all(map(files.read, keys))))


def made_of(*keys: SettingKey[object], default: T) -> T:
    """Return a field whose value :mod:`isthmus.settings.loading` makes of some keys, perhaps with other files."""
    return _field(default, FieldKeys(keys))


def _field(default: T, keys: FieldKeys) -> T:
    """Return a field of a record, in the place of its default, as `dataclasses.field` does."""
    return field(default=default, metadata={FieldKeys: keys})


def keys_of_fields(cls: type[Any]) -> Iterator[tuple[str, FieldKeys]]:
    """Yield the name of each field of a record that is made of keys, and these keys."""
    for each in fields(cls):
        if (keys := each.metadata.get(FieldKeys)) is not None:
            yield each.name, keys
