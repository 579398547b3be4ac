"""The checks of token, Host and Origin that every gate is made of."""

from collections.abc import Sequence

import pytest

from isthmus.listeners.gate import Fault, bearer_token, find_fault, find_foreign, same_secret


def is_own(host: str) -> bool:
    return host == "localhost:1"


@pytest.mark.parametrize(
    ("tokens", "hosts", "origins", "fault"),
    [
        (["secret"], ["LocalHost:1"], [], None),
        ([], ["localhost:1"], [], Fault.NO_TOKEN),
        (["Secret"], ["localhost:1"], [], Fault.WRONG_TOKEN),
        (["\udce4\ud800"], ["localhost:1"], [], Fault.WRONG_TOKEN),
        (["secret", "secret"], ["localhost:1"], [], Fault.WRONG_TOKEN),
        (["secret"], [], [], Fault.HOST),
        (["secret"], ["localhost:1", "localhost:1"], [], Fault.HOST),
        (["secret"], ["attacker.example:1"], [], Fault.HOST),
        (["secret"], ["localhost:1"], ["http://localhost:1"], Fault.ORIGIN),
        (["secret"], ["localhost:1"], [""], Fault.ORIGIN),
        (["wrong"], ["attacker.example"], ["http://attacker.example"], Fault.WRONG_TOKEN),
    ],
)
def test_the_first_fault_is_found(
    tokens: Sequence[str], hosts: Sequence[str], origins: Sequence[str], fault: Fault | None
) -> None:
    assert find_fault(tokens, "secret", hosts, origins, is_own) is fault


@pytest.mark.parametrize(
    ("origin", "fault"), [("HTTP://Localhost:1", None), ("null", Fault.ORIGIN), ("", Fault.ORIGIN)]
)
def test_only_pages_of_the_server_itself_may_ask(origin: str, fault: Fault | None) -> None:
    assert find_foreign(["localhost:1"], [origin], is_own, {"http://localhost:1"}) is fault


@pytest.mark.parametrize(
    ("authorization", "token"), [("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Basic abc", None), ("", None)]
)
def test_a_token_is_read_behind_the_scheme_bearer_alone(authorization: str, token: str | None) -> None:
    assert bearer_token(authorization) == token


def test_secrets_are_compared_whatever_text_is_given() -> None:
    assert same_secret("ä", "ä")
    assert not same_secret("\ud800", "ä")
