"""Tools whose calls would all be refused, because no user can be asked, are not offered to the model."""

from collections.abc import Callable, Sequence

import pytest

from isthmus.agent.approval.grants import Grant, PrefixGrant, ServerGrant, ToolGrant, grants_from_settings
from isthmus.agent.approval.policy import ApprovalMode, Policy, is_always_refused
from isthmus.tools.port.base import ToolKind
from support.agent_harness import AgentHarness
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

Harness = Callable[..., AgentHarness]
EDITS = {"replace", "write_file"}
SHELL = {"run_shell_command"}


def offered(at: AgentHarness) -> set[str]:
    (tools,) = at.body()["tools"]
    return {tool["name"] for tool in tools["functionDeclarations"]}


@pytest.mark.parametrize(
    ("mode", "allowed", "missing"),
    [
        ("default", [], EDITS | SHELL),
        ("default", ["write_file"], {"replace"} | SHELL),
        ("default", ["run_shell_command(git status)"], EDITS),
        ("auto_edit", [], SHELL),
        ("plan", [], EDITS | SHELL),
        ("yolo", [], set[str]()),
    ],
)
async def test_without_a_user_only_tools_that_may_run_are_offered(
    harness: Harness, mode: str, allowed: Sequence[str], missing: set[str]
) -> None:
    policy = Policy(ApprovalMode(mode), grants_from_settings(allowed), may_ask=False)
    at = harness([Reply.of(Say("Done."))], policy=policy)
    await at.prompt("go")
    assert (EDITS | SHELL) - offered(at) == missing
    assert {"read_file", "glob", "write_todos"} <= offered(at)
    assert "ask_user" not in offered(at)


@pytest.mark.parametrize("mode", ApprovalMode)
async def test_a_user_can_allow_everything_so_everything_is_offered(harness: Harness, mode: ApprovalMode) -> None:
    at = harness([Reply.of(Say("Done."))], policy=Policy(mode))
    await at.prompt("go")
    assert EDITS | SHELL | {"ask_user"} <= offered(at)


async def test_a_call_of_a_tool_that_is_not_offered_is_refused_for_want_of_a_user(harness: Harness) -> None:
    call = Call("write_file", {"file_path": "a.txt", "content": "x"})
    at = harness([Reply.of(call), Reply.of(Say("I cannot."))], policy=Policy(may_ask=False))
    await at.prompt("go")
    error = at.calls[0].error
    assert error is not None
    assert error.type == "approval_required"
    assert not (at.workspace / "a.txt").exists()


@pytest.mark.parametrize("entry", ["tickets", "tickets__add", "tickets.add", "add"])
def test_every_way_to_allow_a_tool_of_a_server_counts(entry: str) -> None:
    policy = Policy(grants=grants_from_settings([entry]), may_ask=False)
    assert not is_always_refused(policy, "add", ToolKind.OTHER, "tickets")


@pytest.mark.parametrize(
    ("grant", "is_refused"),
    [
        (ServerGrant("tickets"), False),
        (ServerGrant("other"), True),
        (ToolGrant("tick"), True),
        (ToolGrant("ticketsadd"), True),
        (PrefixGrant(("git",)), True),
    ],
)
def test_what_allows_something_else_does_not_count(grant: Grant, is_refused: bool) -> None:
    policy = Policy(grants=frozenset({grant}), may_ask=False)
    assert is_always_refused(policy, "add", ToolKind.OTHER, "tickets") is is_refused


async def test_only_a_model_whose_provider_searches_the_web_is_offered_the_tool_for_it(harness: Harness) -> None:
    at = harness([Reply.of(Call("google_web_search", {"query": "x"})), Reply.of(Say("Done."))])
    await at.prompt("hello")
    assert "google_web_search" not in {tool["name"] for tool in at.body(0)["tools"][0]["functionDeclarations"]}
    assert "does not search the web" in at.told()
