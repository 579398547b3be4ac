import pytest

from isthmus.agent.tool_search.index import SearchedTool, ToolIndex


def tool(name: str, description: str = "", *parameters: str, server: str = "s") -> SearchedTool:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return SearchedTool(name, server, description, {"type": "object", "properties": properties})


TOOLS = (
    tool("create_issue", "Opens a new issue in a repository.", "title", "body", server="github"),
    tool("list_issues", "Lists the issues of a repository.", "state", server="github"),
    tool("mergePullRequest", "Merges it.", "number", server="github"),
    tool(
        "send_message", "Sends a message to a channel; mentions an issue where there is one.", "channel", server="chat"
    ),
    tool("query", "Runs SQL.", "statement", server="database"),
    tool("天气", "查询城市的天气预报", "城市", server="weather"),
)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("create an issue", ["create_issue", "list_issues", "send_message"]),
        ("ISSUES", ["list_issues", "create_issue", "send_message"]),
        ("pull request", ["mergePullRequest"]),
        ("pullrequest", ["mergePullRequest"]),
        ("database", ["query"]),
        ("statement", ["query", "list_issues"]),
        ("repo list", ["list_issues", "create_issue"]),
        ("github merge", ["mergePullRequest", "list_issues", "create_issue"]),
        ("天气预报", ["天气"]),
        ("", []),
        ("?!", []),
        ("nothing fits zebra", []),
    ],
)
def test_tools_are_found_by_words_of_names_descriptions_parameters_and_servers(query: str, names: list[str]) -> None:
    assert [found.name for found in ToolIndex(TOOLS).search(query, 10)] == names


def test_only_so_many_are_found_and_alike_ones_keep_their_order() -> None:
    alike = tuple(tool(f"tool_{number}", "Reads a page.") for number in range(8))
    assert [found.name for found in ToolIndex(alike).search("read page", 3)] == ["tool_0", "tool_1", "tool_2"]


def test_without_tools_nothing_is_found() -> None:
    assert ToolIndex(()).search("anything", 5) == ()


def test_a_tool_whose_schema_has_no_properties_is_found_too() -> None:
    odd = SearchedTool("odd", "s", "Strange.", {"type": "object", "properties": None})
    assert ToolIndex((odd,)).search("strange", 5) == (odd,)
