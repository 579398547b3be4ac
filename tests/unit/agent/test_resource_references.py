from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.agent.references.syntax import completed, find_references

LISTED: Mapping[str, Sequence[str]] = {
    "docs": ("docs://guide", "file:///a b.txt", "demo://x/1.", "demo://x/2"),
    "docs two": ("two://1",),
    "s": ("//root", "plain"),
}


def found(text: str) -> list[tuple[str, str, str]]:
    return [(item.typed, item.server, item.uris[0]) for item in find_references(text, LISTED)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see @docs:demo://x/2, please", ("@docs:demo://x/2", "docs", "demo://x/2")),
        ("(@docs:demo://x/2)", ("@docs:demo://x/2", "docs", "demo://x/2")),
        ("@docs://guide", ("@docs://guide", "docs", "docs://guide")),
        ("@docs://demo://x/2", ("@docs://demo://x/2", "docs", "demo://x/2")),
        ("@docs://other/page?q=(1)!", ("@docs://other/page?q=(1)", "docs", "docs://other/page?q=(1)")),
        ("ends in its own dot @docs:demo://x/1.", ("@docs:demo://x/1.", "docs", "demo://x/1.")),
        ('quoted @docs:"file:///a b.txt".', ('@docs:"file:///a b.txt"', "docs", "file:///a b.txt")),
        (r"escaped @docs:file:///a\ b.txt!", (r"@docs:file:///a\ b.txt", "docs", "file:///a b.txt")),
        ("@docs two:two://1", ("@docs two:two://1", "docs two", "two://1")),
        ("@s://root", ("@s://root", "s", "//root")),
        ("@s:plain", ("@s:plain", "s", "plain")),
        ("@nobody://x.", ("@nobody://x", "nobody", "nobody://x")),
    ],
)
def test_a_reference_names_a_server_and_a_uri(text: str, expected: tuple[str, str, str]) -> None:
    assert found(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "joe@docs:x",
        "mail joe@example.com",
        "git@github.com:org/repo",
        "@param:string",
        "@docs: is good",
        "@docs",
        r"\@docs:demo://x/2",
        "https://user@docs:8080/x",
        "@docs://",
        "@nobody:x",
        "@types/node",
        "a@b://c",
    ],
)
def test_what_only_looks_like_a_reference_stays_text(text: str) -> None:
    assert found(text) == []


def test_a_name_without_a_server_refers_to_nothing() -> None:
    assert find_references("@nobody://x", {}) == []


@given(st.text(st.sampled_from(list('@docs:/ ab."\\(),\n')), max_size=60))
def test_references_stand_in_the_text_and_do_not_overlap(text: str) -> None:
    end = 0
    for item in find_references(text, LISTED):
        assert item.start >= end
        assert text[item.start : item.start + len(item.typed)] == item.typed
        assert item.typed.startswith("@")
        assert all(item.uris)
        end = item.start + len(item.typed)


URIS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.isprintable)


@given(st.from_regex(r"[a-z][a-z0-9+.-]{0,8}", fullmatch=True), URIS, st.sampled_from(["", " ", ", and", "\n"]))
def test_a_listed_uri_is_found_as_completion_writes_it(scheme: str, rest: str, behind: str) -> None:
    uri = f"{scheme}:{rest}"
    offered = completed("look at @files:", [("files", uri)])
    assert offered is not None
    start, (typed,) = offered
    assert start == len("look at ")
    text = f"look at {typed}{'' if behind[:1] == ',' and not typed[-1].isalnum() else behind}"
    assert [(item.server, item.uris[0]) for item in find_references(text, {"files": (uri,)})] == [("files", uri)]


def test_completion_offers_servers_first_then_their_resources() -> None:
    listed = [(server, uri) for server, uris in LISTED.items() for uri in uris]
    assert completed("see @", listed) == (4, ["@docs:", "@docs two:", "@s:"])
    assert completed("see @docs:demo", listed) == (4, ["@docs:demo://x/1.", "@docs:demo://x/2"])
    assert completed("see @s", listed) == (4, ["@s://root", "@s:plain"])
    assert completed("mail joe@s", listed) is None
    assert completed("see @x", [("x", "a:\x1b[2J"), ("x\n", "a:b")]) is None
    assert completed("see @docs:demo done", listed) is None
