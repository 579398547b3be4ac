from collections.abc import Mapping
from typing import Any

import pytest

from isthmus.a2a.client.discovery import GEMINI_CARD, ClientDialect, NoInterfaceError, is_card, read_card
from isthmus.a2a.protocol.extension import URI, IncompatibleExtensionError

CAPABILITIES: Mapping[str, Any] = {"streaming": True}
EXTENDED: Mapping[str, Any] = {"streaming": True, "extensions": [{"uri": URI}]}


def offered(*interfaces: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Return a card of A2A 1.0."""
    listed = [
        {"url": f"http://a/{binding}/{version}", "protocolBinding": binding, "protocolVersion": version}
        for binding, version in interfaces
    ]
    return {"name": "Agent", "capabilities": CAPABILITIES, "supportedInterfaces": listed, **more}


def test_a_card_of_0_2_or_0_3_has_its_interface_on_top() -> None:
    for version in ({}, {"protocolVersion": "0.2.6"}, {"protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}):
        interface = read_card({"url": "http://a/rpc", "capabilities": CAPABILITIES, **version}).interface
        assert (interface.url, interface.binding, interface.major) == ("http://a/rpc", "JSONRPC", "0.3")


def test_an_additional_interface_is_used_where_the_preferred_one_is_not_spoken() -> None:
    card = {
        "url": "grpc://a",
        "preferredTransport": "GRPC",
        "capabilities": CAPABILITIES,
        "additionalInterfaces": [{"url": "http://a/rpc", "transport": "JSONRPC"}],
    }
    assert read_card(card).interface.url == "http://a/rpc"


@pytest.mark.parametrize(
    ("interfaces", "chosen"),
    [
        ([("GRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "1.0")], "JSONRPC 1.0"),
        ([("HTTP+JSON", "1.0"), ("GRPC", "1.0")], "HTTP+JSON 1.0"),
        ([("JSONRPC", "0.3"), ("JSONRPC", "1.0")], "JSONRPC 1.0"),
        ([("HTTP+JSON", "1.0"), ("JSONRPC", "0.3.0")], "JSONRPC 0.3.0"),
        ([("JSONRPC", "1.2")], "JSONRPC 1.2"),
    ],
)
def test_the_best_interface_that_is_spoken_is_chosen(interfaces: list[tuple[str, str]], chosen: str) -> None:
    interface = read_card(offered(*interfaces)).interface
    assert f"{interface.binding} {interface.version}" == chosen


def test_with_the_extension_its_own_version_of_a2a_comes_first() -> None:
    card = offered(("JSONRPC", "1.0"), ("JSONRPC", "0.3"), capabilities=EXTENDED)
    assert read_card(card).interface.major == "0.3"
    assert read_card(card, "1.0").interface.major == "1.0"


def test_what_is_offered_is_named_when_nothing_of_it_is_spoken() -> None:
    with pytest.raises(NoInterfaceError, match=r"offers GRPC 1\.0, HTTP\+JSON 0\.3; this client speaks JSONRPC 0\.3,"):
        read_card(offered(("GRPC", "1.0"), ("HTTP+JSON", "0.3")))
    with pytest.raises(NoInterfaceError, match="offers no interface"):
        read_card({"capabilities": {}, "supportedInterfaces": []})
    with pytest.raises(NoInterfaceError, match=r"asked to use 0\.3"):
        read_card(offered(("JSONRPC", "1.0")), "0.3")


def test_the_manner_is_that_of_the_card() -> None:
    assert read_card(offered(("JSONRPC", "1.0"))).dialect is ClientDialect.PLAIN
    assert read_card(offered(("JSONRPC", "1.0"), capabilities=EXTENDED)).dialect is ClientDialect.DEVELOPMENT_TOOL
    gemini = {"name": GEMINI_CARD, "url": "http://localhost:41242/", "capabilities": CAPABILITIES}
    assert read_card(gemini).dialect is ClientDialect.CODER_AGENT
    assert read_card({**gemini, "capabilities": EXTENDED}).dialect is ClientDialect.DEVELOPMENT_TOOL


@pytest.mark.parametrize("uri", [URI.replace("v0", "v2"), URI.replace("v0", "v1.2.0")])
def test_another_version_of_the_extension_is_an_error(uri: str) -> None:
    with pytest.raises(IncompatibleExtensionError):
        read_card(offered(("JSONRPC", "1.0"), capabilities={"extensions": [{"uri": uri}]}))


NO_CARDS: tuple[object, ...] = (None, [], {"name": "x"}, {"url": "http://a/"}, {"capabilities": {}})


@pytest.mark.parametrize("value", NO_CARDS)
def test_what_is_no_card_is_none(value: object) -> None:
    assert not is_card(value)
    assert is_card({"url": "http://a/", "capabilities": {}})
