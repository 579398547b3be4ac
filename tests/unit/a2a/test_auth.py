import os
import stat
from pathlib import Path

import pytest

from isthmus.a2a.server.users.auth import LOCAL_USER, Refusal, RequestGate
from isthmus.a2a.token_file import TokenFileError, client_token, ensure_token_file, read_token_file


def test_a_missing_token_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "token"
    token = ensure_token_file(path)
    assert len(token) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0
    assert ensure_token_file(path) == read_token_file(path) == client_token(path, {}) == token
    assert ensure_token_file(tmp_path / "other") != token


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604])
def test_a_token_file_others_can_read_is_made_its_owners_alone_and_that_is_said(
    tmp_path: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"
    path.write_text("a-secret\n", encoding="utf-8")
    path.chmod(mode)
    assert ensure_token_file(path) == "a-secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"mode {mode:04o}" in caplog.text
    assert "a-secret" not in caplog.text


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"\xff\xfe", "ключ".encode()])
def test_a_token_file_without_a_token_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(TokenFileError, match=str(path)):
        ensure_token_file(path)


def test_a_token_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(TokenFileError, match="cannot be created"):
        ensure_token_file(tmp_path / "file" / "token")
    with pytest.raises(TokenFileError, match="cannot be read"):
        read_token_file(tmp_path / "missing")


def test_a_client_takes_its_token_from_the_file_and_else_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = ensure_token_file(path)
    assert client_token(path, {"ISTHMUS_A2A_TOKEN": "x"}) == token
    assert client_token(None, {"ISTHMUS_A2A_TOKEN": "x"}) == "x"
    assert client_token(None, {"ISTHMUS_A2A_TOKEN": ""}) is None


def test_the_token_is_in_no_refusal() -> None:
    gate = RequestGate("very-secret")
    for given in (None, "", "Bearer", "Bearer x", "Basic very-secret", "bearer very-secret-not"):
        refusal = gate.identify(given)
        assert isinstance(refusal, Refusal)
        assert refusal.status == 401
        assert refusal.headers["WWW-Authenticate"].startswith("Bearer")
        assert "very-secret" not in refusal.message
    assert gate.identify("bearer very-secret") == LOCAL_USER


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "[",
        "a b",
        "//",
        "@evil",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/evil",
        "localhost:80?x=",
        "localhost#",
        "localhost:",
    ],
)
def test_a_host_that_is_none_is_refused(host: str | None) -> None:
    refusal = RequestGate("t").refuse_origin(host, None)
    assert refusal is not None
    assert refusal.status == 403


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ensure_token_file(tmp_path / "token")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
