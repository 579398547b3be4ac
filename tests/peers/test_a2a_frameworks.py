"""Agent frameworks that use our server as a remote agent: what they hand to their users is what the agent said, once.

They read answers in different places and join what they find there, so a text that is sent twice, or in two places, is
shown twice by some, and by others not at all. CrewAI takes part in `make frameworks`, which installs it.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.agent.hosted import ask, decision
from isthmus.agent.session.session import Session
from isthmus.development_tool import GenericDetails, ToolCall, ToolCallStatus, ToolOutput
from isthmus.events import AgentEvent, AgentMessage, TextContent, ToolCallUpdate
from support.a2a_hosting import hosted
from support.a2a_serving import TOKEN
from support.agent_frameworks import FRAMEWORKS, OLDEST_SDK, STRANDS, Framework, Programs, programs
from support.serve_program import ServeProgram
from support.shared_serve import shared_serve

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180), pytest.mark.shares_connections]

LAST = "There is\n\n  nothing  here, and that is all that I can say.\n- one\n- two"
SCRIPT = r"""
name: practice
chunk_characters: 7
scenarios:
  - prompt: Greet (?P<name>\w+)
    replies:
      - thought: "**Write the file.** It does not exist yet."
        text: I will write it.
        call: {name: write_file, arguments: {file_path: '{{workspace}}/{{name}}', content: "hello\n"}}
      - text: I greeted {{name}}.
  - prompt: Look
    replies:
      - text: Let me look around.
        call: {name: list_directory, arguments: {dir_path: '{{workspace}}'}}
      - text: And once more.
        call: {name: list_directory, arguments: {dir_path: '{{workspace}}'}}
      - text: "There is\n\n  nothing  here, and that is all that I can say.\n- one\n- two"
  - prompt: '.'
    replies:
      - text: Hello
"""
SILENCE = 1.0
KEEP_ALIVE = 0.2


class Narrator:
    """A hosted agent that says something before it works, asks, and is silent for longer than a keep-alive."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        call = ToolCall("call-1", ToolCallStatus.EXECUTING, "look", {})
        if session.prompt == "Ask" and decision(session, "call-1") is None:
            yield TextContent("", "I must ask.")
            yield ask("call-1", "look", {}, GenericDetails("Look at it"))
            return
        if session.prompt == "Wait":
            await asyncio.sleep(SILENCE)  # delay: the agent is silent for longer than a keep-alive
        elif session.prompt == "Look":
            yield TextContent("", "Let me ")
            yield TextContent("", "look.")
        yield ToolCallUpdate(call)
        yield ToolCallUpdate(ToolCall("call-1", ToolCallStatus.SUCCEEDED, "look", {}, output=ToolOutput("seen")))
        if session.prompt == "Ask":
            yield AgentMessage("", "I looked at it.")
            return
        for piece in LAST.splitlines(keepends=True):
            yield TextContent("", piece)


@pytest.fixture(scope="module")
async def clients() -> AsyncGenerator[Programs]:
    """Start the programs of all frameworks, which get ready while the server starts."""
    async with programs([*FRAMEWORKS, *OLDEST_SDK]) as found:
        yield found


@pytest.fixture(scope="module")
async def requiring(clients: Programs, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ServeProgram]:
    """Start our own agent, with a scripted model. Its card requires the extension, which most frameworks overlook."""
    async with shared_serve(tmp_path_factory.mktemp("requiring"), SCRIPT) as running:
        yield running.program


@pytest.fixture(scope="module")
async def inviting(clients: Programs, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ServeProgram]:
    """Start it for the frameworks that refuse such a card."""
    async with shared_serve(tmp_path_factory.mktemp("inviting"), SCRIPT, "--optional-extension") as running:
        yield running.program


@pytest.fixture
def program(framework: Framework, requiring: ServeProgram, inviting: ServeProgram) -> ServeProgram:
    return inviting if framework.honours_required else requiring


@dataclass(frozen=True, slots=True)
class Narrating:
    """A server of the narrator."""

    url: str
    token: str = TOKEN


@pytest.fixture(scope="module")
async def narrating(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Narrating]:
    options = ServerOptions(TOKEN, keep_alive=KEEP_ALIVE)
    async with hosted(Narrator(), tmp_path_factory.mktemp("narrating"), server=options) as running:
        yield Narrating(running.url)


def each(frameworks: Sequence[Framework]) -> pytest.MarkDecorator:
    """Return the parameters of a test for each framework."""

    absent = pytest.mark.skip("`make frameworks` installs CrewAI")
    extended = pytest.mark.extended
    found = [
        pytest.param(each, id=str(each), marks=[extended] * (each in STRANDS) + ([] if each.takes_part else [absent]))
        for each in frameworks
    ]
    return pytest.mark.parametrize("framework", found)


@each(FRAMEWORKS)
async def test_the_answer_is_handed_over_whole_and_once(
    framework: Framework, clients: Programs, program: ServeProgram
) -> None:
    assert texts(await clients.converse(framework, program, "Good morning")) == ["Hello"]
    assert texts(await clients.converse(framework, program, "Look around")) == [LAST]


@each([each for each in FRAMEWORKS if each.can_answer])
async def test_a_question_is_asked_and_its_answer_goes_on(
    framework: Framework, clients: Programs, program: ServeProgram
) -> None:
    name = str(framework).translate(str.maketrans(" .", "__"))
    asked, answered = await clients.converse(framework, program, f"Greet {name}", "proceed_once")
    assert asked["question"].count("May write_file change ") == 1
    assert f"/{name}?" in asked["question"]
    # What a client shows of the question's data repeats it as what the agent wants.
    assert "I will write it." not in asked["question"].partition("{")[0]
    assert texts([answered]) == [f"I greeted {name}."]


@each(FRAMEWORKS)
async def test_the_answer_of_a_hosted_agent_is_handed_over_whole_and_once(
    framework: Framework, clients: Programs, narrating: Narrating
) -> None:
    assert texts(await clients.converse(framework, narrating, "Look")) == [LAST]
    if framework.can_answer:
        asked, answered = await clients.converse(framework, narrating, "Ask", "Allow once")
        assert asked["question"].startswith("May look go on? Look at it\n")
        assert texts([answered]) == ["I looked at it."]


@each(STRANDS)
async def test_a_framework_that_cannot_answer_hands_over_the_question(
    framework: Framework, clients: Programs, narrating: Narrating
) -> None:
    (asked,) = await clients.converse(framework, narrating, "Ask")
    assert asked["question"].count("May look go on? Look at it\n") == 1


@each([*OLDEST_SDK, STRANDS[0]])
async def test_the_oldest_sdk_gets_an_answer_after_a_long_silence(
    framework: Framework, clients: Programs, narrating: Narrating
) -> None:
    assert texts(await clients.converse(framework, narrating, "Wait")) == [LAST]


def texts(handed: Sequence[dict[str, Any]]) -> list[object]:
    """Return the answers; the pieces of a streamed one are the same text."""
    assert all("".join(each["pieces"]) == each["text"] for each in handed if "pieces" in each)
    return [each.get("text", each) for each in handed]
