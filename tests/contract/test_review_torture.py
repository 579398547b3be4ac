"""Reviews under bad conditions, through a companion, on every editor: one answer, the right bytes, nothing lost.

Neovim and headless run all tests; the other editors in DRIVERS run every way to answer, every unexpected end,
and the contents that editors get wrong. The agents here are clients without a wire; they would write the text
that they get.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from isthmus.files.locations import data_directory
from isthmus.ide.companion import Companion
from isthmus.ide.editor import EditorError
from isthmus.ide.options import CompanionLimits
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Rejected
from support.companion_recorder import Recorder
from support.editor_deadlines import PATIENT_LIMITS
from support.editor_driver import DRIVERS, EditorDriver
from support.extended import first_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@dataclass
class Scene:
    """An editor with a user, the companion that connects it with two agents, and the folder of kept texts."""

    driver: EditorDriver
    companion: Companion
    one: Recorder
    two: Recorder
    kept_folder: Path
    running: "asyncio.Task[None]"

    @property
    def kept(self) -> list[str]:
        """Return the kept texts, of this companion or of the one behind a remote editor, which has the view."""
        folders = (self.kept_folder, data_directory() / "kept")
        return [Path(path).read_bytes().decode() for folder in folders for path in KeptTexts(folder).paths()]

    async def accepted(self, client: Recorder) -> str:
        """Return the text with which the user accepted the newest review of a client."""
        await eventually_async(lambda: client.decisions, what="a decision")
        state = client.decisions[-1].state
        assert isinstance(state, Accepted)
        return state.content

    async def shown(self, review: DiffReview) -> None:
        await eventually_async(lambda: self.companion.queue.is_visible(review), what="a review on the screen")

    async def end(self) -> None:
        """Stop the companion; the editor stays."""
        self.running.cancel()
        await asyncio.wait({self.running}, timeout=60)


@asynccontextmanager
async def _companion(
    driver: EditorDriver, kept_folder: Path, limits: CompanionLimits = PATIENT_LIMITS
) -> AsyncGenerator[Scene]:
    companion = Companion(driver.editor, kept=KeptTexts(kept_folder), limits=limits)
    one, two = Recorder("one", "First agent"), Recorder("two", "Second agent")
    companion.attach(one)
    companion.attach(two)
    scene = Scene(driver, companion, one, two, kept_folder, asyncio.create_task(companion.run()))
    try:
        await asyncio.sleep(0)  # it runs from here on
        yield scene
    finally:
        await scene.end()


EVERYTHING = ("headless", "neovim")
"""The editors that run all tests."""
everything = pytest.mark.parametrize("driver", EVERYTHING, indirect=True)


@pytest.fixture(params=first_of(sorted(DRIVERS, key=lambda name: name == "jupyter"), count=len(DRIVERS) - 1))
async def driver(request: pytest.FixtureRequest, workspace: Path) -> AsyncGenerator[EditorDriver]:
    async with DRIVERS[request.param](workspace) as driver:
        yield driver


@pytest.fixture
def limits() -> CompanionLimits:
    return PATIENT_LIMITS


soon = pytest.mark.parametrize(
    "limits", [replace(PATIENT_LIMITS, reviews=replace(PATIENT_LIMITS.reviews, settle_seconds=0.05))], ids=["soon"]
)
"""A short time for a client to write an accepted text: for tests in which it never does."""


@pytest.fixture
async def scene(driver: EditorDriver, tmp_path: Path, limits: CompanionLimits) -> AsyncGenerator[Scene]:
    async with _companion(driver, tmp_path / "kept", limits) as scene:
        yield scene


def _file(workspace: Path, content: bytes = b"one\ntwo\nthree\n", name: str = "a.py") -> Path:
    path = workspace / name
    path.write_bytes(content)
    return path


# Every way to answer.


async def test_a_review_that_is_accepted_gives_the_proposed_text(scene: Scene, workspace: Path) -> None:
    review = await scene.companion.open_diff(scene.one, str(_file(workspace)), "one\nTWO\n")
    await scene.driver.accept(review)
    assert await scene.accepted(scene.one) == "one\nTWO\n"
    assert (scene.two.decisions, scene.one.closed, scene.kept) == ([], [], [])


async def test_a_review_that_is_accepted_gives_the_text_as_the_user_edited_it(scene: Scene, workspace: Path) -> None:
    review = await scene.companion.open_diff(scene.one, str(_file(workspace)), "one\nTWO\n")
    await scene.driver.edit_review(review, "one\n2\nthree\n")
    await scene.driver.accept(review)
    assert await scene.accepted(scene.one) == "one\n2\nthree\n"
    assert scene.kept == []


@everything
async def test_an_empty_text_accepted_is_empty(scene: Scene, workspace: Path) -> None:
    review = await scene.companion.open_diff(scene.one, str(_file(workspace)), "")
    await scene.driver.accept(review)
    assert await scene.accepted(scene.one) == ""


async def test_a_review_that_is_rejected_is_over_and_changes_nothing(scene: Scene, workspace: Path) -> None:
    review = await scene.companion.open_diff(scene.one, str(_file(workspace)), "new\n")
    await scene.driver.reject(review)
    await eventually_async(lambda: scene.one.decisions, what="a decision")
    assert [decided.state for decided in scene.one.decisions] == [Rejected()]
    assert scene.companion.reviews.all() == ()


@pytest.mark.slow
@soon
async def test_closed_by_its_client_with_what_was_typed(scene: Scene, workspace: Path) -> None:
    path = str(_file(workspace))
    review = await scene.companion.open_diff(scene.one, path, "new\n")
    await scene.driver.edit_review(review, "mine\n")
    closed = await scene.companion.queue.close_oldest(scene.one, path)
    assert closed is not None
    if closed.state == Closed("new\n"):  # the Claude protocol does not send the text of a closed view
        assert scene.kept == ["mine\n"]
    else:
        assert closed.state == Closed("mine\n")
    assert await scene.driver.editor.close_diff(review.id) is None
    assert scene.one.decisions == []


_TYPING = ("emacs", "headless", "jupyter", "neovim", "stdio")
"""Editors with the view themselves; behind a remote one is another companion, which keeps the typed text."""


@pytest.mark.parametrize("driver", _TYPING, indirect=True)
async def test_what_was_typed_is_kept_when_the_user_rejects_all_the_same(scene: Scene, workspace: Path) -> None:
    review = await scene.companion.open_diff(scene.one, str(_file(workspace)), "new\n")
    await scene.driver.edit_review(review, "mine\n")
    await scene.driver.reject(review)
    await eventually_async(lambda: scene.kept == ["mine\n"], what="the text is kept")


@everything
@soon
async def test_what_was_typed_is_kept_when_the_client_refuses_its_edit(scene: Scene, workspace: Path) -> None:
    path = _file(workspace)
    review = await scene.companion.open_diff(scene.one, str(path), "new\n")
    await scene.driver.edit_review(review, "mine\n")
    await scene.companion.queue.close_oldest(scene.one, str(path))
    await eventually_async(lambda: scene.kept == ["mine\n"], what="the text is kept")


@everything
async def test_what_was_typed_is_not_kept_when_the_client_writes_it(scene: Scene, workspace: Path) -> None:
    path = _file(workspace)
    review = await scene.companion.open_diff(scene.one, str(path), "new\n")
    await scene.driver.edit_review(review, "mine\n")
    closed = await scene.companion.queue.close_oldest(scene.one, str(path))
    assert closed is not None
    path.write_text("mine\n", encoding="utf-8")
    await scene.end()
    assert scene.kept == []


@everything
async def test_what_was_typed_is_kept_when_another_terminal_rejects(scene: Scene, workspace: Path) -> None:
    review = await scene.companion.open_diff(scene.one, str(_file(workspace)), "new\n")
    await scene.driver.edit_review(review, "mine\n")
    assert await scene.companion.answers.reject(review.id) is not None
    assert scene.kept == ["mine\n"]


@pytest.mark.parametrize("answer", ["accept", "reject"])
async def test_answered_in_the_editor_and_in_the_terminal_at_once(scene: Scene, workspace: Path, answer: str) -> None:
    review = await scene.companion.open_diff(scene.one, str(_file(workspace)), "new\n")
    terminal = scene.companion.answers.accept if answer == "reject" else scene.companion.answers.reject
    in_editor = scene.driver.accept if answer == "accept" else scene.driver.reject
    # The loser finds no view: each user command reports that in its own way.
    terminal_result, _ = await asyncio.gather(terminal(review.id), in_editor(review), return_exceptions=True)
    await eventually_async(lambda: scene.one.decisions, what="a decision")
    assert len(scene.one.decisions) == 1
    assert not isinstance(terminal_result, BaseException)
    assert terminal_result in (None, scene.one.decisions[0])


# Unexpected ends.


@pytest.mark.slow
async def test_an_editor_that_quits_ends_every_review_and_no_agent_is_told_an_acceptance(
    scene: Scene, workspace: Path
) -> None:
    await scene.companion.open_diff(scene.one, str(_file(workspace)), "first\n")
    await scene.companion.open_diff(scene.two, str(workspace / "a.py"), "second\n")
    await scene.driver.quit()
    await asyncio.wait({scene.running}, timeout=60)
    assert scene.running.done()
    assert scene.companion.reviews.all() == ()
    for client in (scene.one, scene.two):
        assert len(client.closed) + len(client.decisions) == 1
        assert [decided.state for decided in client.decisions] in ([], [Rejected()])


@pytest.mark.slow
async def test_what_was_typed_before_the_editor_quit_is_kept(scene: Scene, workspace: Path) -> None:
    review = await scene.companion.open_diff(scene.one, str(_file(workspace)), "new\n")
    await scene.driver.edit_review(review, "mine\n")
    await scene.driver.quit()
    await asyncio.wait({scene.running}, timeout=60)
    assert scene.kept == ["mine\n"]


@pytest.mark.slow
async def test_what_was_typed_before_a_client_left_is_kept(scene: Scene, workspace: Path) -> None:
    review = await scene.companion.open_diff(scene.one, str(_file(workspace)), "new\n")
    await scene.driver.edit_review(review, "mine 😀\n")
    await scene.companion.detach(scene.one.id)
    assert scene.kept == ["mine 😀\n"]
    assert await scene.driver.editor.close_diff(review.id) is None


@pytest.mark.slow
async def test_a_stopping_companion_keeps_what_was_typed_and_its_successor_is_asked_again(
    driver: EditorDriver, workspace: Path, tmp_path: Path
) -> None:
    path = str(_file(workspace))
    async with _companion(driver, tmp_path / "kept") as scene:
        review = await scene.companion.open_diff(scene.one, path, "new\n")
        await driver.edit_review(review, "mine\n")
        await scene.end()
        assert [closed.id for closed in scene.one.closed] == [review.id]
        assert scene.kept == ["mine\n"]
        assert await driver.editor.close_diff(review.id) is None
    async with _companion(driver, tmp_path / "kept") as scene:
        again = await scene.companion.open_diff(scene.one, path, "new\n")
        await driver.accept(again)
        assert await scene.accepted(scene.one) == "new\n"
        assert [decided.id for decided in scene.one.decisions] == [again.id]


async def test_the_same_file_from_two_agents_each_beside_what_the_other_left(scene: Scene, workspace: Path) -> None:
    path = _file(workspace)
    first = await scene.companion.open_diff(scene.one, str(path), "one\ntwo\nthree\nfour\n")
    second = await scene.companion.open_diff(scene.two, str(path), "zero\none\n")
    assert not scene.companion.reviews.is_shown(second.id)
    await scene.driver.accept(first)
    path.write_text(await scene.accepted(scene.one), encoding="utf-8")
    await scene.shown(second)
    await scene.driver.accept(second)
    assert await scene.accepted(scene.two) == "zero\none\n"
    assert path.read_bytes() == b"one\ntwo\nthree\nfour\n"
    assert (len(scene.one.decisions), len(scene.two.decisions)) == (1, 1)


# Files of every kind: the bytes on disk are preserved, and the accepted text is the proposed one.

_CONTENTS = {
    "crlf": (b"one\r\ntwo\r\n", "one\r\nTWO\r\n"),
    "mixed newlines": (b"one\r\ntwo\nthree\r\n", "one\r\nTWO\nthree\r\n"),
    "bom": (b"\xef\xbb\xbfone\n", "\ufeffONE\n"),
    "bom that the agent left out": (b"\xef\xbb\xbfone\n", "ONE\n"),
    "no final newline": (b"one\ntwo", "one\nTWO"),
    "final newline is taken away": (b"one\ntwo\n", "one\ntwo"),
    "final newline is added": (b"one\ntwo", "one\ntwo\n"),
    "only newlines": (b"\n\n", "\n\n\n"),
    "latin-1": (b"caf\xe9\n", "café\n"),
    "5 MB": (b"0123456789abcdef\n" * 310_000, "0123456789abcdef\n" * 309_999 + "changed\n"),
    "one line of 1 MB": (b"x" * 1_000_000, "y" * 1_000_000),
    "control characters": (b"a\x0cb\tc\n", "a\x0cb\tc\x1b[0m\n"),
}


_DIFFICULT = ("bom", "mixed newlines", "final newline is taken away", "latin-1", "5 MB")
"""Contents that line-based editors, UTF-8 editors, or editors for small files get wrong."""
_ACCEPTED = [
    (name, kind) for name in sorted(DRIVERS) for kind in sorted(_CONTENTS if name in EVERYTHING else _DIFFICULT)
]


@pytest.mark.slow
@pytest.mark.parametrize(("driver", "kind"), _ACCEPTED, indirect=["driver"])
async def test_what_is_accepted_unchanged_is_the_proposal_and_the_file_is_not_touched(
    scene: Scene, workspace: Path, kind: str
) -> None:
    before, proposed = _CONTENTS[kind]
    path = _file(workspace, before)
    stamp = path.stat().st_mtime_ns
    review = await scene.companion.open_diff(scene.one, str(path), proposed)
    await scene.driver.accept(review)
    assert await scene.accepted(scene.one) == proposed
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns == stamp


_TAKEN_BACK = [
    (name, kind)
    for name in sorted(DRIVERS)
    for kind in sorted(_CONTENTS.keys() - {"5 MB"} if name in EVERYTHING else {"mixed newlines"})
]


@pytest.mark.parametrize(("driver", "kind"), _TAKEN_BACK, indirect=["driver"])
async def test_what_a_client_takes_back_unchanged_is_the_proposal(scene: Scene, workspace: Path, kind: str) -> None:
    before, proposed = _CONTENTS[kind]
    path = _file(workspace, before)
    await scene.companion.open_diff(scene.one, str(path), proposed)
    closed = await scene.companion.queue.close_oldest(scene.one, str(path))
    assert closed is not None
    assert closed.state == Closed(proposed)
    assert path.read_bytes() == before
    assert scene.kept == []


async def test_a_binary_file_is_reviewed_or_refused_and_stays_as_it_is(scene: Scene, workspace: Path) -> None:
    content = bytes(range(256)) * 40
    path = _file(workspace, content, "image.png")
    try:
        review = await scene.companion.open_diff(scene.one, str(path), "text now\n")
    except EditorError as error:
        refused = str(error)
    else:
        refused = "image.png"
        await scene.driver.accept(review)
        assert await scene.accepted(scene.one) == "text now\n"
    assert "image.png" in refused
    assert path.read_bytes() == content


@everything
async def test_a_read_only_file_is_reviewed_and_keeps_its_mode(scene: Scene, workspace: Path) -> None:
    path = _file(workspace)
    path.chmod(0o444)
    review = await scene.companion.open_diff(scene.one, str(path), "new\n")
    await scene.driver.accept(review)
    assert await scene.accepted(scene.one) == "new\n"
    assert path.stat().st_mode & 0o777 == 0o444
    assert path.read_bytes() == b"one\ntwo\nthree\n"


@everything
async def test_a_file_that_is_deleted_meanwhile_stays_deleted(scene: Scene, workspace: Path) -> None:
    path = _file(workspace)
    review = await scene.companion.open_diff(scene.one, str(path), "new\n")
    path.unlink()
    await scene.driver.accept(review)
    assert await scene.accepted(scene.one) == "new\n"
    assert not path.exists()


@everything
async def test_a_file_whose_folder_is_deleted_meanwhile_can_be_rejected(scene: Scene, workspace: Path) -> None:
    (workspace / "deep").mkdir()
    path = _file(workspace / "deep")
    review = await scene.companion.open_diff(scene.one, str(path), "new\n")
    path.unlink()
    path.parent.rmdir()
    await scene.driver.reject(review)
    await eventually_async(lambda: scene.one.decisions, what="a decision")
    assert [decided.state for decided in scene.one.decisions] == [Rejected()]


async def test_a_name_that_is_no_unicode_is_reviewed_or_refused_and_the_next_review_works(
    scene: Scene, workspace: Path
) -> None:
    path = os.fsdecode(os.fsencode(workspace) + b"/caf\xe9.py")
    Path(path).write_bytes(b"old\n")
    try:
        review = await scene.companion.open_diff(scene.one, path, "new\n")
    except EditorError:
        pass
    else:
        decided = await scene.companion.answers.accept(review.id)
        assert decided is not None
        assert decided.state == Accepted("new\n")
        assert decided.file_path == path
    assert Path(path).read_bytes() == b"old\n"
    following = await scene.companion.open_diff(scene.two, str(_file(workspace)), "new\n")
    await scene.driver.accept(following)
    assert await scene.accepted(scene.two) == "new\n"


@everything
@pytest.mark.parametrize("what", ["folder", "pipe", "missing folder of a file"])
async def test_what_is_no_file_is_refused_and_a_file_to_be_made_is_not_made(
    scene: Scene, workspace: Path, what: str
) -> None:
    path = workspace / "thing"
    if what == "missing folder of a file":
        _file(workspace, name="thing")
        path = path / "below.py"
    elif what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(EditorError, match="thing"):
        await scene.companion.open_diff(scene.one, str(path), "new\n")
    assert scene.companion.reviews.all() == ()
