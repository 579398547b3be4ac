"""An HTTP request whose headers are looked up in constant time; each request of A2A looks up about twelve."""

from functools import cached_property
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from typing_extensions import override


class HttpRequest(Request):
    """A request of starlette with indexed headers."""

    @property
    @override
    def headers(self) -> Headers:
        """The headers of the request."""
        return self._indexed_headers

    @cached_property
    def _indexed_headers(self) -> "_IndexedHeaders":
        return _IndexedHeaders(raw=self.scope["headers"])


class _IndexedHeaders(Headers):
    """Headers with an index by name."""

    @cached_property
    def _values(self) -> dict[str, list[str]]:
        values: dict[str, list[str]] = {}
        for name, value in self._list:
            values.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        return values

    @override
    def __getitem__(self, key: str) -> str:
        return self._values[key.lower()][0]

    @override
    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower() in self._values

    @override
    def get(self, key: str, default: Any = None) -> Any:
        found = self._values.get(key.lower())
        return default if found is None else found[0]

    @override
    def getlist(self, key: str) -> list[str]:
        return self._values.get(key.lower(), [])
