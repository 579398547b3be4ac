import pytest

from isthmus.a2a.protocol.extension import (
    URI,
    Activation,
    IncompatibleExtensionError,
    Version,
    activated_by_card,
    activation,
    envelope,
    is_same_extension,
    require_compatible,
    version_of,
)


def uri(version: str) -> str:
    return URI.replace("/v0/", f"/v{version}/")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0", Version(0)),
        ("1", Version(1)),
        ("1.2", Version(1, 2)),
        ("1.2.3", Version(1, 2, 3)),
        ("1.2.3-beta.1", Version(1, 2, 3, "beta.1")),
        ("1.2.3+build.5", Version(1, 2, 3)),
        ("10.20.30", Version(10, 20, 30)),
    ],
)
@pytest.mark.requirement("A2A-016", "A2A-017")
def test_the_version_is_extracted_from_the_uri(version: str, expected: Version) -> None:
    assert version_of(uri(version)) == expected
    assert is_same_extension(uri(version))


@pytest.mark.parametrize("other", ["", "https://example.org/spec.md", "https://example.org/version/1", URI + "x", "v0"])
def test_other_uris_are_other_extensions(other: str) -> None:
    assert not is_same_extension(other)


@pytest.mark.parametrize("version", ["1x", "x", "1.2.3.4"])
def test_what_is_no_version_is_none(version: str) -> None:
    assert version_of(uri(version)) is None


@pytest.mark.parametrize(
    ("server", "client", "fits"),
    [
        ("0", "0", True),
        ("0", "0.3", True),
        ("0.3", "0", True),
        ("0.3", "0.3.9", True),
        ("0.3", "0.2", False),
        ("0.2", "0.3", False),
        ("0", "1", False),
        ("1", "1.7", True),
        ("1.7", "1.2", True),
        ("1.7.0", "1.7.5", True),
        ("1.2", "1.7", False),
        ("2.0", "1.9", False),
        ("1.0.0-beta", "1.0.0-beta", True),
        ("1.0.0-beta", "1.0.0", False),
        ("1.1.0", "1.0.0-beta", False),
    ],
)
@pytest.mark.requirement("A2A-018")
def test_compatibility_is_that_of_semantic_versions(server: str, client: str, fits: bool) -> None:
    if fits:
        require_compatible(uri(server), uri(client))
    else:
        with pytest.raises(IncompatibleExtensionError, match=f"version {server} .*version {client},"):
            require_compatible(uri(server), uri(client))


def test_headers_and_metadata_activate_it() -> None:
    assert activation([]) == Activation(None)
    assert activation(["", "https://example.org/x"], {}, {"other": 1}) == Activation(None)
    assert activation([f"https://example.org/x, {URI}"]) == Activation(URI)
    assert activation([], {}, {URI: {}}) == Activation(URI)


def test_the_client_is_answered_under_its_own_spelling_of_the_version() -> None:
    assert activation([uri("0.1.0")]) == Activation(uri("0.1.0"))
    assert activation([uri("0.1.0")], {URI: {}}) == Activation(URI)


def test_a_client_takes_the_spelling_of_the_card() -> None:
    card = {"capabilities": {"extensions": [{"uri": "https://example.org/x"}, 5, {"uri": uri("0.4")}]}}
    assert activated_by_card(card) == Activation(uri("0.4"))
    for capabilities in (None, {"extensions": None}, {"streaming": True}):
        assert activated_by_card({"capabilities": capabilities}) == Activation(None)
    assert activated_by_card({}) == Activation(None)
    with pytest.raises(IncompatibleExtensionError):
        activated_by_card({"capabilities": {"extensions": [{"uri": uri("1")}]}})


def test_the_envelope_is_found_under_any_spelling_of_the_version() -> None:
    assert envelope({URI: {"kind": 1}, uri("0.1"): {"kind": 2}}, URI) == {"kind": 1}
    assert envelope({uri("0.1"): {"kind": 2}}, URI) == {"kind": 2}
    assert envelope({URI: "text"}, URI) is None
    assert envelope(None, URI) is None
