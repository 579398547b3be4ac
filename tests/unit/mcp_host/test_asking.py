import asyncio
from collections import deque
from pathlib import Path

import pytest

from isthmus.agent.calls.running_call import OpenQuestion
from isthmus.development_tool import FileDiff, GenericDetails
from isthmus.forms.requested_schema import form_of
from isthmus.mcp_host.config.server_config import HttpEndpoint, HttpKind
from isthmus.mcp_host.elicitation.page_address import host_of
from isthmus.mcp_host.elicitation.server_questions import (
    SamplingPrompt,
    SamplingPromptMessage,
    form_question,
    sampling_question,
    url_question,
    without_stop,
)
from isthmus.mcp_host.elicitation.server_requests import (
    ATTEMPTS,
    MAXIMUM_QUESTIONS,
    CallAsks,
    DeclinedError,
    Elicited,
    ServerAsking,
)
from isthmus.mcp_host.elicitation.url_elicitation import Page, pages_needed
from isthmus.tools.port.user_question import Chosen, ModelAnswer, NoAnswer, Reply, UserQuestion
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

TEXT = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
YES_NO = {"type": "object", "properties": {"agree": {"type": "boolean"}}}
WISH = SamplingPrompt("", (SamplingPromptMessage("user", "what?"),), 10)


class AskedCall(CallAsks):
    """A call that records its questions."""

    def __init__(self, task: str) -> None:
        self.questions: deque[OpenQuestion] = deque()
        super().__init__(task, self._put)

    async def _put(self, question: UserQuestion, withdrawn: "asyncio.Future[str] | None" = None) -> Reply:
        asked = OpenQuestion(question)
        self.questions.append(asked)
        assert withdrawn is not None
        withdrawn.add_done_callback(lambda reason: asked.withdraw(reason.result()))
        return await asked.wait()


def calling(task: str = "task") -> AskedCall:
    return AskedCall(task)


async def shown(asks: AskedCall) -> OpenQuestion:
    """Return the next question of a call."""
    await eventually_async(lambda: bool(asks.questions))
    return asks.questions.popleft()


async def test_what_comes_without_a_call_is_declined_and_noted(tmp_path: Path) -> None:
    server = ServerAsking("s", tmp_path)
    assert await server.elicit_form("?", YES_NO) == Elicited("decline")
    assert await server.elicit_url("?", "https://example.org") == Elicited("decline")
    with pytest.raises(DeclinedError, match="no call of its tools was running"):
        await server.sample(WISH)
    assert [note.partition(":")[0] for note in server.notes] == [
        "declined an elicitation",
        "declined an elicitation",
        "declined sampling",
    ]


async def test_a_question_of_unknown_session_is_declined_unless_it_came_with_its_call(
    tmp_path: Path,
) -> None:
    server = ServerAsking("s", tmp_path)
    one, two = calling("one"), calling("two")
    with server.call(one), server.call(two):
        assert await server.elicit_form("?", YES_NO) == Elicited("decline")
        assert "several sessions" in server.notes[0]
        asking = one.start(server.elicit_form("?", YES_NO))
        (await shown(one)).answer(Chosen("yes"))
        assert await asking == Elicited("accept", {"agree": True})
        assert not two.questions


async def test_of_several_calls_of_one_session_the_last_one_asks(tmp_path: Path) -> None:
    server = ServerAsking("s", tmp_path)
    first, last = calling(), calling()
    with server.call(first), server.call(last):
        asking = asyncio.ensure_future(server.elicit_form("?", YES_NO))
        (await shown(last)).answer(Chosen("no"))
        assert await asking == Elicited("accept", {"agree": False})


async def test_what_is_filled_in_is_asked_anew_until_it_fits_so_many_times_at_most(tmp_path: Path) -> None:
    server, asks = ServerAsking("s", tmp_path), calling()
    with server.call(asks):
        asking = asyncio.ensure_future(server.elicit_form("?", TEXT))
        for number in range(ATTEMPTS):
            ask = await shown(asks)
            details = ask.question.details
            assert isinstance(details, FileDiff)
            assert ("NOT ACCEPTED" in details.new_content) is (number > 0)
            ask.answer(Chosen("accept", '{"b": "no number"}'))
        assert await asking == Elicited("cancel")
        assert server.notes[0].endswith("the form was filled in wrongly 3 times")


async def test_a_call_may_ask_so_many_questions(tmp_path: Path) -> None:
    server, asks = ServerAsking("s", tmp_path), calling()
    with server.call(asks):
        for _ in range(MAXIMUM_QUESTIONS):
            asking = asyncio.ensure_future(server.elicit_form("?", YES_NO))
            (await shown(asks)).answer(Chosen("cancel"))
            assert await asking == Elicited("cancel")
        assert await server.elicit_form("?", YES_NO) == Elicited("decline")
        assert f"has asked {MAXIMUM_QUESTIONS} questions" in server.notes[0]
        assert await server.elicit_form("x" * 200_001, YES_NO) == Elicited("decline")
        assert "200,001 characters" in server.notes[1]


async def test_the_end_of_a_call_ends_its_questions(tmp_path: Path) -> None:
    server, asks = ServerAsking("s", tmp_path), calling()
    with server.call(asks):
        asking = asyncio.ensure_future(server.elicit_form("?", YES_NO))
        ask = await shown(asks)
    assert await asking == Elicited("cancel")
    assert not ask.is_open


async def test_the_browser_is_opened_after_consent_alone(tmp_path: Path) -> None:
    opened: list[str] = []
    server, asks = ServerAsking("s", tmp_path, opened.append), calling()
    with server.call(asks):
        for option, action in (("decline", "decline"), ("cancel", "cancel"), ("accept", "accept")):
            asking = asyncio.ensure_future(server.elicit_url("Log in", "https://example.org/in"))
            ask = await shown(asks)
            assert opened == []
            ask.answer(Chosen(option))
            assert await asking == Elicited(action)
    assert opened == ["https://example.org/in"]


async def test_the_models_answer_ends_where_the_server_says(tmp_path: Path) -> None:
    server, asks = ServerAsking("s", tmp_path), calling()
    wish = SamplingPrompt("be brief", (SamplingPromptMessage("user", "what?"),), 10**9, ("END",), ("small",))
    with server.call(asks):
        asking = asyncio.ensure_future(server.sample(wish))
        ask = await shown(asks)
        assert ask.question.prompt is not None
        assert (ask.question.prompt.system, ask.question.prompt.maximum_tokens) == ("be brief", 100_000)
        ask.answer(ModelAnswer("a bird END and more", "m", is_cut=True))
        assert await asking == ModelAnswer("a bird ", "m")
        asking = asyncio.ensure_future(server.sample(wish))
        (await shown(asks)).answer(NoAnswer("nobody is here"))
        with pytest.raises(DeclinedError, match="nobody is here"):
            await asking


@pytest.mark.slow
async def test_a_server_has_so_many_requests_to_the_model_in_all_calls_of_a_task(tmp_path: Path) -> None:
    server = ServerAsking("s", tmp_path)

    async def sample(task: str) -> ModelAnswer:
        asks = calling(task)
        with server.call(asks):
            asking = asyncio.ensure_future(server.sample(WISH))
            waiting = asyncio.ensure_future(shown(asks))
            await asyncio.wait({asking, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result().answer(ModelAnswer("yes", "m"))
            waiting.cancel()
            return await asking

    for _ in range(25):
        await sample(str(tmp_path))
    with pytest.raises(DeclinedError, match="the task has had 25 requests to the model of this server, the maximum"):
        await sample(str(tmp_path))
    assert "sampling" in server.notes[-1]
    assert (await sample(str(tmp_path / "another"))).text == "yes"
    assert server.sampled == 26


async def test_an_image_in_a_prompt_goes_to_the_model_from_a_file(tmp_path: Path) -> None:
    server, asks = ServerAsking("s", tmp_path), calling(str(tmp_path / "out"))
    blocks = ({"type": "text", "text": "what?"}, {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"})
    wish = SamplingPrompt("", (SamplingPromptMessage("user", "what?", blocks),), 10)
    with server.call(asks):
        asking = asyncio.ensure_future(server.sample(wish))
        ask = await shown(asks)
        assert ask.question.prompt is not None
        (message,) = ask.question.prompt.messages
        (media,) = message.media
        assert (media.media_type, media.path.read_bytes()) == ("image/png", b"\x89PNG\r\n\x1a\n")
        assert isinstance(ask.question.details, GenericDetails)
        assert "user: [image/png]" in ask.question.details.description
        ask.answer(ModelAnswer("a picture", "m"))
        assert (await asking).text == "a picture"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.org/a?b=c", "example.org"),
        ("http://example.org:8080", "example.org:8080 (not encrypted)"),
        ("http://localhost:1/x", "localhost:1"),
        ("https://bücher.example", "xn--bcher-kva.example (written bücher.example)"),
    ],
)
def test_the_host_of_a_page_is_told_as_it_is_asked_for(url: str, host: str) -> None:
    assert host_of(url) == host
    details = url_question("s", "Go there", url, opens_browser=True).details
    assert isinstance(details, GenericDetails)
    assert f"Its host: {host}\n" in details.description


def test_a_servers_words_cannot_pass_for_ours() -> None:
    sampling = sampling_question(
        "s", SamplingPrompt("", (SamplingPromptMessage("user", "x\nThe answer goes to you."),), 1)
    )
    assert isinstance(sampling.details, GenericDetails)
    assert "\n> The answer goes to you." in sampling.details.description
    lie = "x]\nThe answer goes to you.\x1b[2J"
    image = SamplingPromptMessage("user", "", ({"type": "image", "mimeType": lie}, {"type": lie}))
    sampling = sampling_question("s", SamplingPrompt("", (image,), 1, hints=(lie, "y" * 1_000_000)))
    assert isinstance(sampling.details, GenericDetails)
    assert "\nThe answer goes to you" not in sampling.details.description
    assert "\x1b" not in sampling.details.description
    assert "user: [of an unknown kind, of an unknown kind]" in sampling.details.description
    assert len(sampling.details.description) < 1_000
    form = form_question("a/../b\n", "Hi\n1  Accept", form_of(YES_NO), Path("/w"))
    assert isinstance(form.details, GenericDetails)
    assert "\n> 1  Accept" in form.details.description
    document = form_question("a/../b", "Hi", form_of(TEXT), Path("/w")).details
    assert isinstance(document, FileDiff)
    assert document.file_path == "/w/a-..-b-request.json"


def test_the_first_of_several_stop_sequences_counts() -> None:
    assert without_stop("one two three", ("three", "two", "")) == ("one ", True)
    assert without_stop("one", ("two",)) == ("one", False)


@pytest.mark.parametrize("data", [None, [], {"elicitations": 1}, {"elicitations": [1, {}, {"url": 1}]}])
def test_an_error_that_names_no_pages_needs_none(data: object) -> None:
    class Told(Exception):
        def __init__(self, code: int) -> None:
            self.error = type("Told", (), {"code": code, "data": data})

    assert pages_needed(Told(-32042)) == ()
    assert pages_needed(ValueError()) == ()


def test_the_pages_that_an_error_names_are_found() -> None:
    class ToldError(Exception):
        error = type(
            "Told",
            (),
            {"code": -32042, "data": {"elicitations": [{"url": "u", "message": "m", "elicitationId": "e"}] * 9}},
        )

    assert pages_needed(ToldError()) == (Page("u", "m", "e"),) * 5


def test_a_form_goes_along_with_its_question_unless_it_is_very_long(tmp_path: Path) -> None:
    small = {"properties": {"a": {"type": "string", "pattern": "(x+)+y"}, "b": {"type": "integer"}}, "required": ["b"]}
    question = form_question("s", "?", form_of(small), tmp_path)
    assert question.about["requested_schema"] == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["b"],
    }
    long = {"properties": {name: {"type": "string", "enum": [name * 600] * 200} for name in "ab"}}
    question = form_question("s", "?", form_of(long), tmp_path)
    assert "requested_schema" not in question.about
    assert isinstance(question.details, FileDiff)


def test_the_question_of_a_form_says_where_it_goes_and_what_was_not_accepted(tmp_path: Path) -> None:
    direct = form_question("s", "?", form_of(YES_NO), tmp_path, host="tickets.example.org:8443")
    assert direct.about == {
        "server": "s",
        "mode": "form",
        "message": "?",
        "fields": ["agree"],
        "host": "tickets.example.org:8443",
        "requested_schema": {"type": "object", "properties": {"agree": {"type": "boolean"}}, "required": []},
    }
    again = form_question("s", "?", form_of(TEXT), tmp_path, "b: expected a whole number", '{"b": "x"}')
    assert (again.about["problem"], "host" in again.about) == ("b: expected a whole number", False)
    page = url_question("s", "Log in", "https://login.example.org/x", opens_browser=False)
    assert (page.about["host"], page.about["opens_browser"]) == ("login.example.org", False)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Tickets.example.org/mcp", "tickets.example.org"),
        ("http://user:secret@127.0.0.1:8080/mcp", "127.0.0.1:8080"),
        ("http://[::1", ""),
        ("", ""),
    ],
)
def test_the_host_of_a_server_is_named_without_its_secrets(url: str, host: str) -> None:
    assert HttpEndpoint(url, HttpKind.PROBE, {}).host == host


def test_descriptions_of_choices_go_along_with_a_form(tmp_path: Path) -> None:
    choices = [{"const": "a", "title": "A", "description": "first\x1b[2J"}, {"const": "b"}]
    form = form_of({"properties": {"one": {"type": "string", "oneOf": choices}}})
    schema = form_question("s", "?", form, tmp_path).about["requested_schema"]
    assert schema["properties"]["one"]["oneOf"] == [
        {"const": "a", "title": "A", "description": "first [2J"},
        {"const": "b", "title": "b"},
    ]
    assert form_of(schema) == form
