from isthmus.mcp_host.catalogue.catalogue import usable_tools
from isthmus.mcp_host.catalogue.listing import ListedTool


def listed(*names: str) -> tuple[ListedTool, ...]:
    return tuple(ListedTool(name, "", {"type": "object"}) for name in names)


def test_names_that_a_server_lacks_are_told_since_a_slip_takes_or_leaves_a_tool() -> None:
    tools, told = usable_tools(listed("read", "write"), ("read", "raed"), ("Write",))
    assert [tool.name for tool in tools] == ["read"]
    assert told == (
        "includeTools names 'raed', which it does not have; it has: read, write",
        "excludeTools names 'Write', which it does not have; it has: read, write",
    )


def test_of_many_tools_the_first_are_told() -> None:
    _, (told,) = usable_tools(listed(*(f"t{number}" for number in range(30))), ("none",), ())
    assert told.endswith("t8, t9 and 20 more")


def test_nothing_is_told_of_names_that_fit_or_of_a_server_without_tools() -> None:
    assert usable_tools(listed("a", "b"), ("a(x)", "b"), ("b",))[1] == ()
    assert usable_tools((), ("a",), ("b",))[1] == ()
