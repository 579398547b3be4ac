"""Reader of typed values in one object of a settings file; its errors name the faulty key. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from isthmus.errors import IsthmusError
from isthmus.mcp_host.config.variables import expand, home_as_it_stands, left_as_it_stands

LIKENESS = 0.85
"""Minimum similarity (0 to 1) to a known key at which an unknown key counts as misspelled."""
LONGEST_KEY = 100


class ServerConfigError(IsthmusError):
    """A server's configuration cannot be used; the message names file and key, the expected and the received value."""


class Entry:
    """Reader of typed values in one object. ``where`` is its place, for errors; ``warnings`` are for the user.

    ``filled`` are the variables that were expanded, with their values. A missing value is read as None or empty; a
    value of another type raises ServerConfigError.
    """

    def __init__(self, where: str, value: object, variables: Mapping[str, str]) -> None:
        self.where = where
        self.warnings: list[str] = []
        self._read_keys: set[str] = set()
        self.filled: dict[str, str] = {}
        self._variables = variables
        if not isinstance(value, Mapping):
            raise ServerConfigError(f"{self.where}: expected an object {{...}}, received {_short(value)}")
        self._values = cast("Mapping[str, Any]", value)

    def error(self, key: str, expected: str, received: object) -> ServerConfigError:
        """Return the error for an unexpected value."""
        return ServerConfigError(f"{self.where}.{key}: expected {expected}, received {_short(received)}")

    def present_keys(self) -> str:
        """Return the keys of the object, to end an error about missing keys: a present key may be misspelled."""
        names = ", ".join(self._values)
        return f", only {names[:80]}" if names else ""

    def misspellings(self, prefix: str = "") -> list[str]:
        """Return a warning for each unread key that resembles a read one. Call it after all reads."""
        import difflib

        known = {_normalize(key): key for key in self._read_keys}
        warnings: list[str] = []
        for key in self._values:
            close = [] if key in self._read_keys else difflib.get_close_matches(_normalize(key), known, 1, LIKENESS)
            warnings += [f"{prefix}{key} is not a known key; did you mean {known[found]}?" for found in close]
        return warnings

    def string(self, key: str) -> str | None:
        """Return a string."""
        return cast("str | None", self._typed(key, "a string", lambda value: isinstance(value, str)))

    def boolean(self, key: str) -> bool:
        """Return a boolean; False if it is missing."""
        return bool(self._typed(key, "true or false", lambda value: isinstance(value, bool)))

    def raw(self, key: str) -> object:
        """Return the value without a check of its type."""
        self._read_keys.add(key)
        return self._values.get(key)

    def number(self, key: str) -> float | None:
        """Return a number."""
        return cast(
            "float | None",
            self._typed(key, "a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
        )

    def strings(self, key: str) -> tuple[str, ...] | None:
        """Return a list of strings."""

        def fits(value: object) -> bool:
            return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value))

        found = cast("list[str] | None", self._typed(key, "a list of strings", fits))
        return None if found is None else tuple(found)

    def texts(self, key: str) -> Mapping[str, str]:
        """Return an object of strings; numbers and booleans, as used for ports and flags, are converted."""
        inner = self.inner(key)
        if inner is None:
            return {}
        texts: dict[str, str] = {}
        for name, value in inner._values.items():
            if isinstance(value, bool):
                texts[name] = "true" if value else "false"
            elif isinstance(value, str | int | float):
                texts[name] = str(value)
            else:
                raise inner.error(name, "a string", value)
        return texts

    def inner(self, key: str) -> "Entry | None":
        """Return the reader of an inner object."""
        value = self.raw(key)
        if value is None:
            return None
        inner = Entry(f"{self.where}.{key}", value, self._variables)
        inner.filled = self.filled
        return inner

    def required(self, key: str) -> str:
        """Return a string with its variables expanded; all of them must be set. Empty if it is missing."""
        return self.expanded(key, self.string(key) or "", is_error=True)

    def optional(self, key: str) -> str | None:
        """Return a string with its variables expanded; all of them must be set. None if it is missing."""
        text = self.string(key)
        return None if text is None else self.expanded(key, text, is_error=True)

    def all_expanded(self, key: str) -> tuple[str, ...]:
        """Return a list of strings with their variables expanded; all of them must be set. Empty if it is missing."""
        texts = self.strings(key) or ()
        return tuple(self.expanded(f"{key}[{index}]", text, is_error=True) for index, text in enumerate(texts))

    def expanded(self, key: str, text: str, *, is_error: bool) -> str:
        """Return `text` with its variables expanded. An unset variable raises ServerConfigError or adds a warning.

        References as in the files of other programs, which are not expanded, add a warning.
        """
        self.warnings += [f"{key}: {sentence}" for sentence in left_as_it_stands(text)]
        found = expand(text, self._variables)
        self.filled.update(found.values)
        if found.unset:
            names = ", ".join(f"${name}" for name in found.unset)
            verb = "is" if len(found.unset) == 1 else "are"
            if is_error:
                raise ServerConfigError(
                    f"{self.where}.{key}: {names} {verb} not set; set it before you start, or write "
                    f"${{{found.unset[0]}:-a default}}"
                )
            self.warnings.append(f"{key}: {names} {verb} not set and treated as empty")
        return found.text

    def for_program(self, key: str, text: str, *, is_error: bool = False) -> str:
        """Return the same for a part of a command or its environment; ``~`` in it adds a warning."""
        if (sentence := home_as_it_stands(text)) is not None:
            self.warnings.append(f"{key}: {sentence}")
        return self.expanded(key, text, is_error=is_error)

    def _typed(self, key: str, expected: str, fits: Callable[[object], bool]) -> object:
        value = self.raw(key)
        if value is not None and not fits(value):
            raise self.error(key, expected, value)
        return value


def _normalize(key: str) -> str:
    return key[:LONGEST_KEY].lower().replace("_", "").replace("-", "")


def _short(value: object) -> str:
    text = "nothing" if value is None else f"{type(value).__name__} {value!r}"
    return text if len(text) <= 80 else text[:77] + "..."
