"""WebSocket upgrades that are accepted or refused."""

import pytest

from isthmus.ide.claude.gate import UpgradeGate

_GOOD = {"x-claude-code-ide-authorization": ["secret"], "host": ["127.0.0.1:12345"]}


def _check(**changes: list[str]) -> tuple[int, str] | None:
    headers = {**_GOOD, **{name.replace("_", "-"): value for name, value in changes.items()}}
    refusal = UpgradeGate("secret", 12345).check(lambda name: headers.get(name.lower(), []))
    return None if refusal is None else (refusal.status, refusal.text)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost", "[::1]", "host.docker.internal"])
def test_a_client_on_this_machine_with_the_token_is_let_in(host: str) -> None:
    assert _check(host=[f"{host}:12345"]) is None


def test_a_missing_and_a_wrong_token_are_refused_in_the_words_of_real_servers() -> None:
    missing = _check(x_claude_code_ide_authorization=[])
    assert missing is not None
    assert missing[0] == 401
    assert missing[1].startswith("Bad WebSocket upgrade request: Missing authentication header: x-claude-code-ide")
    wrong_tokens: list[list[str]] = [[""], ["Secret"], ["secret "], ["secret", "secret"], ["s\udcff"], ["x" * 100_000]]
    for wrong in wrong_tokens:
        refused = _check(x_claude_code_ide_authorization=wrong)
        assert refused == (401, "Bad WebSocket upgrade request: Invalid authentication token\n"), wrong


@pytest.mark.parametrize("host", [[], ["evil.example:12345"], ["127.0.0.1"], ["127.0.0.1:1", "127.0.0.1:12345"]])
def test_another_host_is_refused_and_told_which_are_expected(host: list[str]) -> None:
    refused = _check(host=host)
    assert refused is not None
    assert refused[0] == 403
    assert "localhost:12345" in refused[1]


def test_web_pages_are_refused() -> None:
    for origin in ("null", "http://127.0.0.1:12345", "https://evil.example"):
        refused = _check(origin=[origin])
        assert refused is not None
        assert refused[0] == 403


def test_the_token_is_asked_for_before_anything_else_is_told() -> None:
    refused = _check(x_claude_code_ide_authorization=["no"], host=["evil"], origin=["evil"])
    assert refused is not None
    assert refused[0] == 401
