"""URIs of files: percent-encoded in output, and tolerant of errors in input."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ide.file_uri import file_uri, path_of_uri


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name and not name.startswith(b"/")))
def test_every_path_comes_back(name: bytes) -> None:
    path = os.path.normpath("/folder/" + os.fsdecode(name))
    uri = file_uri(path)
    assert uri.isascii()
    assert path_of_uri(uri) == path


def test_what_is_special_is_percent_encoded() -> None:
    assert file_uri("/a b/ä#?%.py") == "file:///a%20b/%C3%A4%23%3F%25.py"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a b/ä#1.py", "/a b/ä#1.py"),
        ("FILE:///a.py", "/a.py"),
        ("file://localhost/a.py", "/a.py"),
        ("file://elsewhere/a.py", None),
        ("/a.py", None),
        ("untitled:Untitled-1", None),
        ("file:///a%00.py", None),
        ("file:///a\ud800.py", None),
        ("", None),
    ],
)
def test_what_real_programs_send_is_understood(uri: str, path: str | None) -> None:
    assert path_of_uri(uri) == path
