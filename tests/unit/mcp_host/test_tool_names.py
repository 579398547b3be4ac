import re
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.mcp_host.catalogue.tool_names import assign_names, is_included, shortened, valid_name


@pytest.mark.requirement("MCP-033", "MCP-034", "MCP-035", "MCP-036")
@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (None, (), ["a", "b", "c"]),
        (("a", "b"), (), ["a", "b"]),
        (None, ("b",), ["a", "c"]),
        (("a", "b"), ("b",), ["a"]),
        ((), (), []),
        (("a(x, y)",), (), ["a"]),
    ],
)
def test_exclude_wins_over_include_and_without_include_all_are_in(
    include: tuple[str, ...] | None, exclude: tuple[str, ...], expected: list[str]
) -> None:
    assert [name for name in "abc" if is_included(name, include, exclude)] == expected


@pytest.mark.requirement("MCP-087")
@pytest.mark.parametrize(
    ("name", "valid"),
    [("a b/c", "a_b_c"), ("a.b-c_d", "a.b-c_d"), ("7up", "_7up"), ("", "_"), ("ünïcode", "_n_code"), (".x", "_.x")],
)
def test_other_characters_become_underscores(name: str, valid: str) -> None:
    assert valid_name(name) == valid


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("\u641c\u7d22", "___44ce7ae9"),
        ("get_\u5929\u6c14", "get____4436b398"),
        ("\u043f\u043e\u0438\u0441\u043a", "______d89cae10"),
        ("\U0001f50d", "__8abc19d7"),
        ("a" * 70 + "\u641c", "a" * 26 + "___" + "a" * 24 + "__67dd3b28"),
    ],
)
def test_a_name_in_another_script_ends_with_its_digest(name: str, valid: str) -> None:
    assert valid_name(name) == valid


def test_names_in_another_script_do_not_depend_on_those_before() -> None:
    tools = [("one", name) for name in ("\u641c\u7d22", "\u8bfb\u53d6", "get_\u5929\u6c14", "get_\u65b0\u95fb")]
    assert assign_names(tools, (), {}) == assign_names(reversed(tools), (), {})


@pytest.mark.requirement("MCP-088")
def test_a_long_name_is_cut_in_the_middle() -> None:
    name = "begin" + "x" * 100 + "end"
    cut = valid_name(name)
    assert len(cut) == 63
    assert re.fullmatch("begin" + "x" * 25 + "___" + "x" * 27 + "end", cut)
    assert shortened("x" * 63) == "x" * 63


@pytest.mark.requirement("MCP-089", "MCP-090", "MCP-091")
def test_the_first_server_keeps_the_name_and_later_ones_are_prefixed() -> None:
    names = assign_names([("one", "search"), ("two", "search"), ("two", "other"), ("three", "search")], (), {})
    assert names == {
        ("one", "search"): "search",
        ("two", "search"): "two__search",
        ("two", "other"): "other",
        ("three", "search"): "three__search",
    }


def test_a_tool_named_like_a_built_in_one_is_prefixed() -> None:
    assert assign_names([("fs", "read_file")], ("read_file",), {}) == {("fs", "read_file"): "fs__read_file"}


def test_a_name_once_shown_stays_with_its_tool_when_an_earlier_server_comes_late() -> None:
    shown = assign_names([("late", "x"), ("soon", "y")][1:], (), {})
    again = assign_names([("late", "y"), ("soon", "y")], (), shown)
    assert again == {("soon", "y"): "y", ("late", "y"): "late__y"}


@given(
    st.lists(st.tuples(st.text(ascii_lowercase + "_ ", max_size=40), st.text(max_size=80)), unique=True, max_size=12),
    st.lists(st.sampled_from(["a", "b", "_"]), max_size=2),
)
def test_names_are_always_valid_and_never_two_alike(tools: list[tuple[str, str]], reserved: list[str]) -> None:
    names = assign_names(tools, reserved, {})
    assert set(names) == set(tools)
    assert len(set(names.values())) == len(names)
    assert not set(names.values()) & set(reserved)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}", name) for name in names.values())


@pytest.mark.requirement("MCP-008")
@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(["x", "y", "A__x", "B__x"])), unique=True, max_size=10),
    st.data(),
)
def test_names_known_from_before_follow_the_configuration_whoever_connects_first(
    tools: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Check that with all servers' tools stored, the order of connections and calls changes no name."""
    whole = sorted(tools)
    expected = assign_names(whole, (), {})
    given_names: dict[tuple[str, str], str] = {}
    for key in data.draw(st.permutations(whole)):
        # As the host does: all known tools are named in the order of the configuration, and shown names stay.
        given_names[key] = assign_names(whole, (), given_names)[key]
    assert given_names == expected


@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(["x", "y", "A__x", "B__x"])), unique=True, max_size=10),
    st.data(),
)
def test_a_name_never_changes_hands_while_the_agent_runs_in_whatever_server_order(
    tools: list[tuple[str, str]], data: st.DataObject
) -> None:
    shown: dict[tuple[str, str], str] = {}
    known: list[tuple[str, str]] = []
    for key in data.draw(st.permutations(tools)):
        known = sorted([*known, key])
        names = assign_names(known, (), shown)
        assert {old: names[old] for old in shown} == shown
        assert len(set(names.values())) == len(names)
        shown = names
