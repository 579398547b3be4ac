"""Approvals for all future sessions: who may give them, for which tools, and when they are valid again."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.kept_approvals import ApprovalsError, KeptApproval
from isthmus.agent.approval.policy import KEPT_APPROVALS_NAME, Policy, is_guarded
from isthmus.events import TaskState
from isthmus.parts.approvals_file import MAXIMUM_APPROVALS, ApprovalsFile
from isthmus.tools.port.tool_set import ServerTools, ToolSet
from support.effect_tools import EffectTool
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

FOR_GOOD = "proceed_always_and_save"
APPROVAL = KeptApproval("one", "user", "a", "v1")


@dataclass
class VersionedTool(EffectTool):
    """A tool whose server may describe it differently later."""

    version: str = "v1"


def tools(*, version: str = "v1", origin: str = "user", foreign: bool = False) -> ToolSet:
    made = ToolSet.of(*(VersionedTool(name, server="one", version=version) for name in ("a", "b")))
    servers = (ServerTools("one", ("a", "b"), origin),)
    return replace(made, servers=servers, foreign_servers=frozenset({"one"}) if foreign else frozenset())


@dataclass
class Kept:
    """Stored approvals, in memory; ``error`` is raised by the next one."""

    kept: set[KeptApproval] = field(default_factory=set[KeptApproval])
    error: ApprovalsError | None = None

    async def approvals(self) -> frozenset[KeptApproval]:
        return frozenset(self.kept)

    async def keep(self, approval: KeptApproval) -> None:
        if self.error is not None:
            raise self.error
        self.kept.add(approval)


def options(harness: Any) -> list[str]:
    request = harness.calls[-1].confirmation_request
    return [] if request is None else [option.id for option in request.options]


def replies(*names: str) -> list[Reply]:
    return [*(Reply.of(Call(name, {})) for name in names), Reply.of(Say("done"))]


@pytest.mark.slow
@pytest.mark.requirement("MCP-106", "MCP-107")
async def test_a_tool_that_is_allowed_for_good_is_not_asked_about_again_and_others_are(harness: Any) -> None:
    kept = Kept()
    first = harness(replies("a", "a", "b"), tools=tools(), approvals=kept)
    await first.prompt("go")
    assert options(first) == ["proceed_once", "proceed_always_tool", "proceed_always_server", FOR_GOOD, "cancel"]
    assert (await first.answer(first.calls[0], FOR_GOOD)).state is TaskState.INPUT_REQUIRED
    assert first.states("a")[-1] == "SUCCEEDED"
    assert first.calls[-1].tool_name == "b"
    assert kept.kept == {APPROVAL}
    another = harness(replies("a"), tools=tools(), approvals=kept)
    assert (await another.prompt("go")).state is TaskState.COMPLETED


@pytest.mark.parametrize(
    "now",
    [
        {"tools": tools(version="v2")},
        {"tools": tools(origin="project /somewhere/.gemini/settings.json")},
        {"tools": tools(foreign=True)},
        {"approvals": None},
        {"user": "alice"},
    ],
    ids=["other version", "server of a project", "server of a client", "setting is off", "another user"],
)
async def test_what_was_allowed_for_good_counts_for_that_tool_server_and_user(
    harness: Any, now: dict[str, Any]
) -> None:
    at = harness(replies("a"), **{"tools": tools(), "approvals": Kept({APPROVAL}), **now})
    assert (await at.prompt("go")).state is TaskState.INPUT_REQUIRED
    assert (FOR_GOOD in options(at)) is (now.keys() == {"tools"} and not at.tools.foreign_servers)


async def test_plan_mode_and_guarded_edits_stay_what_they_are(harness: Any) -> None:
    at = harness(replies("a"), tools=tools(), approvals=Kept({APPROVAL}), settings={"approval_mode": "plan"})
    assert (await at.prompt("go")).state is TaskState.COMPLETED
    assert at.states("a")[-1] == "FAILED"
    assert is_guarded(Path("/home/me/.local/share/isthmus") / KEPT_APPROVALS_NAME)


async def test_an_answer_that_cannot_be_kept_holds_for_the_session(
    harness: Any, caplog: pytest.LogCaptureFixture
) -> None:
    at = harness(replies("a", "a"), tools=tools(), approvals=Kept(error=ApprovalsError("the disk is full")))
    await at.prompt("go")
    assert (await at.answer(at.calls[0], FOR_GOOD)).state is TaskState.COMPLETED
    assert "the approval of a of the MCP server one was not kept: the disk is full" in caplog.text


async def test_without_a_user_what_was_allowed_runs(harness: Any) -> None:
    at = harness(replies("a", "b"), tools=tools(), approvals=Kept({APPROVAL}), policy=Policy(may_ask=False))
    await at.prompt("go")
    assert (at.states("a")[-1], at.states("b")[-1]) == ("SUCCEEDED", "FAILED")


async def test_the_file_is_private_and_keeps_each_once(tmp_path: Path) -> None:
    path = tmp_path / "data" / KEPT_APPROVALS_NAME
    file = ApprovalsFile(path)
    assert await file.approvals() == frozenset()
    other = KeptApproval("two", "project /p/.mcp.json", "b", "")
    for approval in (APPROVAL, other, APPROVAL):
        await file.keep(approval)
    assert await ApprovalsFile(path).approvals() == {APPROVAL, other}
    assert len(json.loads(path.read_text("utf-8"))) == 2
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["{", '{"server": 1}', "\udcff", '"x"'])
async def test_a_broken_file_allows_nothing_and_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / KEPT_APPROVALS_NAME
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    file = ApprovalsFile(path)
    assert await file.approvals() == frozenset()
    with pytest.raises(ApprovalsError, match="nothing was written"):
        await file.keep(APPROVAL)
    assert path.read_bytes() == before


async def test_entries_that_are_not_whole_allow_nothing_and_there_is_a_limit(tmp_path: Path) -> None:
    path = tmp_path / KEPT_APPROVALS_NAME
    path.write_text('[{"server": "one"}, 7, {"server": "one", "origin": "user", "tool": "a", "version": 1}]', "utf-8")
    assert await ApprovalsFile(path).approvals() == frozenset()
    entry = {"server": "one", "origin": "user", "version": ""}
    path.write_text(json.dumps([{**entry, "tool": str(number)} for number in range(MAXIMUM_APPROVALS)]), "utf-8")
    with pytest.raises(ApprovalsError, match="remove some"):
        await ApprovalsFile(path).keep(APPROVAL)
