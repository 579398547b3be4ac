"""Origins of web pages, as the owner of a server writes them."""

import pytest

from isthmus.a2a.server.http.cross_origin import OriginError, read_origin


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("https://app.example", "https://app.example"),
        ("HTTPS://App.Example", "https://app.example"),
        ("https://app.example:443", "https://app.example"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:5173", "http://localhost:5173"),
        ("http://[::1]:5173", "http://[::1]:5173"),
        ("chrome-extension://abcdefgh", "chrome-extension://abcdefgh"),
        ("tauri://localhost", "tauri://localhost"),
    ],
)
def test_an_origin_is_read_as_browsers_send_it(given: str, read: str) -> None:
    assert read_origin(given) == read


@pytest.mark.parametrize(
    "given", ["*", "null", "", "app.example", "https://", "https://app.example/", "https://*.example", "https://a,b"]
)
def test_what_is_not_one_origin_is_refused(given: str) -> None:
    with pytest.raises(OriginError, match="is not the origin of web pages: expected scheme, host"):
        read_origin(given)
