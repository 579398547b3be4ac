"""The commands of pages: what waits, what was seen, and who answered."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import COMMANDS, ControlCommandError
from isthmus.ide.control.page_commands import PAGE_COMMANDS
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import Accepted, Rejected
from support.companion_recorder import Recorder

pytestmark = pytest.mark.anyio

OLD, NEW = "one\r\n", "\ufeffone\r\ntwo\r\n"


@pytest.fixture
def client() -> Recorder:
    return Recorder()


@pytest.fixture
def companion(workspace: Path, tmp_path: Path, client: Recorder) -> Companion:
    (workspace / "a.py").write_bytes(OLD.encode())
    found = Companion(HeadlessEditor((str(workspace),)), kept=KeptTexts(tmp_path / "kept"))
    found.attach(client)
    return found


async def ask(companion: Companion, command: str, **arguments: object) -> Any:
    return await PAGE_COMMANDS[command](companion, arguments)


async def test_a_review_is_accepted_as_it_was_changed_with_the_line_ends_of_the_proposal(
    companion: Companion, client: Recorder, workspace: Path
) -> None:
    await companion.open_diff(client, str(workspace / "a.py"), NEW)
    waiting = await ask(companion, "waiting")
    (listed,) = waiting["reviews"]
    assert (listed["file"], listed["agent"], listed["new"], listed["shown"]) == (
        str(workspace / "a.py"), "A client", False, True
    )  # fmt: skip
    seen = await ask(companion, "review", id=listed["id"])
    assert (seen["old"], seen["new"]) == (OLD, NEW)
    said = await ask(
        companion,
        "decide",
        id=listed["id"],
        decision="accept",
        state=seen["state"],
        content="one\n2\n",
        by="Chrome\non\u202eLinux" + "x" * 99,
    )
    assert said["outcome"]["decision"] == "accepted"
    assert (len(said["outcome"]["by"]), "\u202e" in said["outcome"]["by"]) == (60, False)
    assert client.decisions[0].state == Accepted("\ufeffone\r\n2\r\n")
    after = await ask(companion, "waiting")
    assert (after["reviews"], after["ended"]) == ([], [said["outcome"]])


@pytest.mark.parametrize("change", ["the file", "the proposal"])
async def test_an_acceptance_of_something_else_than_was_seen_decides_nothing(
    companion: Companion, client: Recorder, workspace: Path, change: str
) -> None:
    review = await companion.open_diff(client, str(workspace / "a.py"), NEW)
    seen = await ask(companion, "review", id=review.id)
    if change == "the file":
        (workspace / "a.py").write_text("other\n")
    else:
        companion.answers.typed(review.id, "typed elsewhere\n")
    said = await ask(companion, "decide", id=review.id, decision="accept", state=seen["state"], by="me")
    assert said == {"changed": True}
    assert client.decisions == []
    seen = await ask(companion, "review", id=review.id)
    said = await ask(companion, "decide", id=review.id, decision="accept", state=seen["state"], by="me")
    assert said["outcome"]["by"] == "me"


@pytest.mark.parametrize("first", ["terminal", "agent", "another page"])
async def test_a_late_decision_learns_who_was_first(
    companion: Companion, client: Recorder, workspace: Path, first: str
) -> None:
    path = str(workspace / "a.py")
    review = await companion.open_diff(client, path, NEW)
    seen = await ask(companion, "review", id=review.id)
    if first == "terminal":
        await COMMANDS["reject"](companion, {"path": path})
    elif first == "agent":
        await companion.queue.close_oldest(client, path)
    else:
        await ask(companion, "decide", id=review.id, decision="reject", by="a phone")
    said = await ask(companion, "decide", id=review.id, decision="accept", state=seen["state"], by="me")
    assert said["late"]
    expected = {
        "terminal": ("rejected", "isthmus ide"),
        "agent": ("closed", "A client"),
        "another page": ("rejected", "a phone"),
    }
    assert (said["outcome"]["decision"], said["outcome"]["by"]) == expected[first]
    assert (await ask(companion, "review", id=review.id)) == said
    assert all(not isinstance(decision.state, Accepted) for decision in client.heard)


async def test_an_acceptance_that_the_agent_receives_as_a_rejection_says_why(
    companion: Companion, client: Recorder, workspace: Path
) -> None:
    client.warning = "no empty files"
    review = await companion.open_diff(client, str(workspace / "a.py"), NEW)
    seen = await ask(companion, "review", id=review.id)
    said = await ask(companion, "decide", id=review.id, decision="accept", state=seen["state"], by="me")
    assert (said["outcome"]["decision"], said["outcome"]["problem"]) == ("rejected", "no empty files")


async def test_a_question_is_answered_once_and_names_who_did(companion: Companion) -> None:
    asked = asyncio.create_task(companion.asking.ask("An agent", "May I?", "print(1)"))
    await companion.asking.wait(30)
    (question,) = (await ask(companion, "waiting"))["questions"]
    assert (question["title"], question["text"], question["agent"]) == ("May I?", "print(1)", "An agent")
    said = await ask(companion, "reply", id=question["id"], answer="yes", by="a phone")
    assert await asked
    assert (said["outcome"]["decision"], said["outcome"]["by"]) == ("yes", "a phone")
    late = await ask(companion, "reply", id=question["id"], answer="no", by="me")
    assert (late["late"], late["outcome"]["by"]) == (True, "a phone")


async def test_a_question_that_its_agent_takes_back_is_closed_by_it(companion: Companion) -> None:
    asked = asyncio.create_task(companion.asking.ask("An agent", "May I?", "print(1)"))
    await companion.asking.wait(30)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    (ended,) = (await ask(companion, "waiting"))["ended"]
    assert (ended["decision"], ended["by"], ended["about"]) == ("closed", "An agent", "May I?")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("review", {}),
        ("decide", {"id": "x", "by": "me"}),
        ("decide", {"id": "x", "by": "me", "decision": "maybe"}),
        ("decide", {"id": "x", "decision": "accept"}),
        ("decide", {"id": 1, "by": "me", "decision": "accept"}),
        ("decide", {"id": "x", "by": "me", "decision": "accept", "content": 1}),
        ("reply", {"id": "x", "by": "me", "answer": True}),
    ],
)
async def test_bad_commands_are_refused(companion: Companion, command: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ControlCommandError):
        await PAGE_COMMANDS[command](companion, arguments)


async def test_an_acceptance_without_what_was_seen_is_refused(
    companion: Companion, client: Recorder, workspace: Path
) -> None:
    review = await companion.open_diff(client, str(workspace / "a.py"), NEW)
    with pytest.raises(ControlCommandError, match="expected state"):
        await ask(companion, "decide", id=review.id, decision="accept", by="me")
    assert client.decisions == []


async def test_words_go_only_to_an_agent_whose_protocol_carries_them(
    companion: Companion, client: Recorder, workspace: Path
) -> None:
    review = await companion.open_diff(client, str(workspace / "a.py"), NEW)
    assert not (await ask(companion, "review", id=review.id))["reasons"]
    refused = {"id": review.id, "decision": "reject", "by": "Chrome"}
    for reason in ("why", "x" * 20_001, 1):
        with pytest.raises(ControlCommandError):
            await ask(companion, "decide", **refused, reason=reason)
    client.takes_reasons = True
    said = await ask(companion, "decide", **refused, reason="why")
    assert said["outcome"]["decision"] == "rejected"
    assert [decided.state for decided in client.decisions] == [Rejected(reason="why")]
