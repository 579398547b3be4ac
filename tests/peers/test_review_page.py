"""The review page over HTTP, as a browser uses it, and attacks of strangers."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from isthmus.editors.event_queue import EventQueue
from isthmus.editors.review_page.html import MAXIMUM_EDITABLE_CHARACTERS
from isthmus.editors.review_page.pending_reviews import PendingReviews
from isthmus.editors.review_page.server import ReviewPageServer
from isthmus.ide.editor import Consent, DiffAccepted, DiffEdited, DiffRejected, EditorEvent
from isthmus.ide.reviews.review import DiffReview
from support.review_page import Visitor, browser, visiting
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class Desk:
    """A board, its page, and the decisions."""

    def __init__(self) -> None:
        self.told: list[EditorEvent] = []
        self.board = PendingReviews(self.told.append)
        self.now = 1000.0
        self.server = ReviewPageServer(self.board, lambda: self.now)

    def open(self, path: Path, proposed: str) -> DiffReview:
        review = DiffReview(f"r{path.name}", str(path), proposed, "owner", "An <agent>")
        self.board.open(review)
        return review


@pytest.fixture
async def desk() -> AsyncGenerator[Desk]:
    desk = Desk()
    await desk.server.start()
    yield desk
    await desk.server.stop()


@pytest.fixture
async def visitor(desk: Desk) -> AsyncGenerator[Visitor]:
    async with visiting(desk.server.link()) as visitor:
        yield visitor


def _cell(name: str, source: list[str], **more: Any) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": 7, "id": name, "metadata": {}, "outputs": []}
    return cell | {"source": source} | more


def _notebook(*cells: dict[str, Any]) -> str:
    notebook = {"cells": list(cells), "metadata": {"kernelspec": {"name": "x"}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1) + "\n"


_OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["kept\n"]}
_OLD = _notebook(_cell("one", ["a = 1\n"]), _cell("two", ["b = 1\n"], outputs=[_OUTPUT]), _cell("three", ["c = 1\n"]))
_NEW = _notebook(_cell("one", ["a = 2\n"]), _cell("two", ["b = 2\n"]), _cell("three", ["c = 2\n"]))


async def test_one_ticked_cell_of_three_leaves_every_byte_of_the_others(
    desk: Desk, visitor: Visitor, workspace: Path
) -> None:
    path = workspace / "a.ipynb"
    path.write_text(_OLD, encoding="utf-8")
    review = desk.open(path, _NEW)
    form = (await visitor.review(review)).forms[0]
    assert {"change-1", "change-2", "change-3"} <= set(form.fields)
    del form.fields["change-2"], form.fields["change-3"]
    await visitor.submit(form, "accept")
    assert desk.told == [DiffAccepted(review.id, _OLD.replace("a = 1", "a = 2"))]
    assert path.read_text(encoding="utf-8") == _OLD


async def test_an_edited_cell_is_accepted_as_it_was_edited(desk: Desk, visitor: Visitor, workspace: Path) -> None:
    path = workspace / "a.ipynb"
    path.write_text(_OLD, encoding="utf-8")
    review = desk.open(path, _NEW)
    form = (await visitor.review(review)).forms[0]
    assert form.fields["source-2"] == "b = 2\n"
    form.fields["source-2"] = "b = 3\n"
    await visitor.submit(form, "keep")
    [kept] = desk.told
    assert isinstance(kept, DiffEdited)
    assert json.loads(kept.content)["cells"][1]["source"] == ["b = 3\n"]
    form = (await visitor.review(review)).forms[0]
    assert form.fields["source-2"] == "b = 3\n"
    del form.fields["change-1"], form.fields["change-3"]
    await visitor.submit(form, "accept")
    [_, decided] = desk.told
    assert isinstance(decided, DiffAccepted)
    cells = json.loads(decided.content)["cells"]
    assert [cell["source"] for cell in cells] == [["a = 1\n"], ["b = 3\n"], ["c = 1\n"]]


async def test_ticking_nothing_decides_nothing(desk: Desk, visitor: Visitor, workspace: Path) -> None:
    path = workspace / "a.ipynb"
    path.write_text(_OLD, encoding="utf-8")
    form = (await visitor.review(desk.open(path, _NEW))).forms[0]
    for number in (1, 2, 3):
        del form.fields[f"change-{number}"]
    assert "Nothing is ticked" in (await visitor.submit(form, "accept")).text
    assert desk.told == []


async def test_a_file_that_changed_since_it_was_shown_is_shown_again_and_not_decided(
    desk: Desk, visitor: Visitor, workspace: Path
) -> None:
    path = workspace / "a.py"
    path.write_text("one\n", encoding="utf-8")
    review = desk.open(path, "two\n")
    form = (await visitor.review(review)).forms[0]
    path.write_text("changed\n", encoding="utf-8")
    page = await visitor.submit(form, "accept")
    assert "changed meanwhile" in page.text
    assert desk.told == []
    await visitor.submit(page.forms[0], "accept")
    assert desk.told == [DiffAccepted(review.id, "two\n")]


@pytest.mark.parametrize(
    "text", ["", "\n", "\n\nx", "a\r\nb", "a\rb\n", "\ufeff# é 😀 <&>\"'\n", "</textarea>\n", "\t \n"]
)
async def test_a_text_that_was_not_edited_comes_back_as_it_was(
    desk: Desk, visitor: Visitor, workspace: Path, text: str
) -> None:
    review = desk.open(workspace / "new.txt", text)
    await visitor.answer(review, "accept")
    assert desk.told == [DiffAccepted(review.id, text)]


async def test_an_edited_text_keeps_the_newlines_and_the_mark_of_the_proposal(
    desk: Desk, visitor: Visitor, workspace: Path
) -> None:
    review = desk.open(workspace / "new.txt", "\ufeffone\r\ntwo\r\n")
    await visitor.answer(review, "accept", "one\nand a half\ntwo\n")
    assert desk.told == [DiffAccepted(review.id, "\ufeffone\r\nand a half\r\ntwo\r\n")]


async def test_a_text_too_long_for_a_browser_can_be_accepted_or_rejected(
    desk: Desk, visitor: Visitor, workspace: Path
) -> None:
    long = "x" * 100 + "\n"
    text = long * (MAXIMUM_EDITABLE_CHARACTERS // len(long) + 1)
    review, other = desk.open(workspace / "one.txt", text), desk.open(workspace / "two.txt", text)
    page = await visitor.review(review)
    assert "text" not in page.forms[0].fields
    assert "more lines are not shown" in page.text
    await visitor.submit(page.forms[0], "accept")
    await visitor.submit((await visitor.review(other)).forms[0], "reject")
    assert desk.told == [DiffAccepted(review.id, text), DiffRejected(other.id)]


async def test_an_answer_that_comes_second_changes_nothing_and_is_told(
    desk: Desk, visitor: Visitor, workspace: Path
) -> None:
    review = desk.open(workspace / "a.txt", "new")
    form = (await visitor.review(review)).forms[0]
    assert desk.board.reject(review.id)
    for action in ("accept", "reject", "keep"):
        assert "answered elsewhere" in (await visitor.submit(form, action)).text
    assert desk.told == [DiffRejected(review.id)]


@pytest.mark.parametrize(
    ("button", "consent"), [("yes", Consent.YES), ("no", Consent.NO), ("session", Consent.SESSION)]
)
async def test_a_question_is_answered_on_the_page(desk: Desk, visitor: Visitor, button: str, consent: Consent) -> None:
    asked = asyncio.create_task(desk.board.ask("Run <code>?", "print(1) & more"))
    await eventually_async(lambda: desk.board.questions, what="the question")
    page = await visitor.overview()
    assert "Run &lt;code&gt;?" in page.text
    assert "print(1) &amp; more" in page.text
    assert f'value="{button}"' in page.text
    desk.now += 1.0
    await visitor.submit(page.forms[0], button)
    assert await asyncio.wait_for(asked, 30) is consent
    assert (await visitor.overview()).forms == []


async def test_a_click_that_was_meant_for_another_question_allows_nothing(desk: Desk, visitor: Visitor) -> None:
    first, second = (asyncio.create_task(desk.board.ask(title, "")) for title in ("One?", "Two?"))
    await eventually_async(lambda: len(desk.board.questions) == 2, what="the questions")
    await visitor.overview()
    desk.now += 60.0
    desk.board.answer(desk.board.questions[0].id, Consent.NO)
    await asyncio.wait_for(first, 30)
    page = await visitor.overview()  # the second question has the position of the first one
    desk.now += 0.9
    said = await visitor.submit(page.forms[0], "session")
    assert "The questions had just changed, so this yes was not taken." in said.text
    assert not second.done()
    desk.now += 0.1
    await visitor.submit(page.forms[0], "yes")
    assert await asyncio.wait_for(second, 30) is Consent.YES


async def test_nothing_in_a_page_can_run_or_load_and_no_text_is_markup(
    desk: Desk, visitor: Visitor, workspace: Path
) -> None:
    review = desk.open(workspace / "<script>alert(1)</script>.txt", "<img src=x onerror=alert(1)>")
    for page in (await visitor.overview(), await visitor.review(review)):
        assert "<script" not in page.text
        assert "<img" not in page.text
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'nonce-")
        assert "form-action 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["cache-control"] == "no-store"


async def test_what_is_hidden_in_a_proposal_is_seen_and_stays_in_the_text_to_accept(
    desk: Desk, visitor: Visitor, workspace: Path
) -> None:
    proposed = 'access = "user\u202e \u2066# only for admins\u2069 \u2066"\r\nlast\u200f\r\n'
    review = desk.open(workspace / "a\u202eyp.py", proposed)
    asking = asyncio.create_task(desk.board.ask("May I?", "print(1) # \u202e)(mr"))
    await eventually_async(lambda: desk.board.questions, what="the question")
    overview = (await visitor.overview()).text
    assert "a\\u202eyp.py" in overview
    assert "print(1) # \\u202e)(mr" in overview
    page = await visitor.review(review)
    assert "user\\u202e \\u2066# only for admins\\u2069" in page.text
    assert "last\\u200f</td>" in page.text
    await visitor.submit(page.forms[0], "accept")
    assert desk.told == [DiffAccepted(review.id, proposed)]
    desk.board.clear()
    assert await asking is Consent.NO


async def test_what_is_hidden_in_what_else_changes_of_a_cell_is_seen(
    desk: Desk, visitor: Visitor, workspace: Path
) -> None:
    path = workspace / "a.ipynb"
    path.write_text(_notebook(_cell("one", ["x = 1"])), encoding="utf-8")
    review = desk.open(path, _notebook(_cell("one", ["x = 1"], metadata={"tags": ["\u202eelif"]})))
    page = (await visitor.review(review)).text
    assert "\\u202eelif" in page
    assert "\u202e" not in page


async def test_a_link_works_once_and_a_visit_only_in_the_browser_that_opened_it(desk: Desk, workspace: Path) -> None:
    link = desk.server.link()
    async with visiting(link) as visitor:
        review = desk.open(workspace / "a.txt", "new")
        assert (await visitor.review(review)).status == 200
        async with browser(link) as stranger:
            for path in (link, f"{visitor.base}/", f"{visitor.base}/review/{review.id}", "/", "/open/", "/open/guess"):
                response = await stranger.get(path)
                assert response.status_code in (403, 404), path
                assert "a.txt" not in response.text
                assert "set-cookie" not in response.headers


async def test_what_no_browser_of_the_user_sends_is_refused(desk: Desk, visitor: Visitor, workspace: Path) -> None:
    review = desk.open(workspace / "a.txt", "new")
    form = (await visitor.review(review)).forms[0]
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"host": "evil.example"}):
        assert (await visitor.submit(form, "accept", **headers)).status == 403, headers
    assert (await visitor.submit(form, "accept", **{"content-type": "application/json"})).status == 415
    form.fields["secret"] = "guess"
    assert (await visitor.submit(form, "accept")).status == 403
    form.fields["filler"] = "x" * (17 * 1024 * 1024)
    assert (await visitor.submit(form, "accept")).status == 413
    assert desk.told == []


@pytest.mark.parametrize("path", ["/visit/guess/review/r", "/open/guess", "/else"])
async def test_a_stranger_is_refused_before_the_body_is_sent(desk: Desk, path: str) -> None:
    host = urlsplit(desk.server.link()).netloc
    reader, writer = await asyncio.open_connection(*host.split(":"))
    writer.write(f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 16000000\r\n\r\n".encode())
    status = await asyncio.wait_for(reader.readline(), 20)  # the server waits up to 30 s for the body
    assert status.split()[1] in {b"403", b"405"}
    writer.close()
    await writer.wait_closed()


async def test_when_the_editor_ends_open_questions_are_answered_by_no() -> None:
    events = EventQueue()
    board = PendingReviews(events.put)
    asked = asyncio.create_task(board.ask("Run it?", ""))
    await eventually_async(lambda: board.questions, what="the question")
    board.clear()
    assert await asyncio.wait_for(asked, 30) is Consent.NO
