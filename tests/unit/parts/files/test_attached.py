"""Files of messages: either all of them are stored, or none is and the error says why."""

import base64
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from isthmus.client import ContentNotSupported
from isthmus.events import MessagePart
from isthmus.journal.port.base import JournalUnavailable
from isthmus.media import Media
from isthmus.models.endpoint.media_rules import MediaRules
from isthmus.parts.files.attached import AttachedFiles

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(92)
RULES = MediaRules(frozenset({"image/png"}), 150, 250)


def image(data: bytes = PNG) -> MessagePart:
    return MessagePart(raw=base64.b64encode(data).decode(), media_type="image/png", filename="a.png")


async def own_model() -> str | None:
    return None


async def kept(folder: Path, *parts: MessagePart) -> tuple[Media, ...]:
    return await AttachedFiles(folder, lambda _: RULES).keep("task", parts, own_model)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_each_file_is_kept_with_its_bytes(tmp_path: Path) -> None:
    media = await kept(tmp_path, MessagePart(text="Look."), image(), image(PNG + b"\xff"))
    assert [item.media_type for item in media] == ["image/png", "image/png"]
    assert [item.path.read_bytes() for item in media] == [PNG, PNG + b"\xff"]
    assert {item.path.parent for item in media} == {tmp_path / "task"}


async def test_more_than_the_model_takes_at_once_is_refused_with_both_sizes(tmp_path: Path) -> None:
    with pytest.raises(ContentNotSupported, match="have 300 bytes; the model takes at most 250"):
        await kept(tmp_path, image(), image(), image())
    assert files_in(tmp_path) == []


async def test_a_file_too_large_for_the_model_is_refused_with_size_and_limit(tmp_path: Path) -> None:
    with pytest.raises(
        ContentNotSupported, match=r"a\.png of 151 bytes cannot be read: it has more than the 150 bytes"
    ):
        await kept(tmp_path, image(PNG + bytes(51)))
    assert files_in(tmp_path) == []


async def test_a_file_that_cannot_be_kept_leaves_none_of_its_message(tmp_path: Path) -> None:
    before = tmp_path / "task" / "before"
    before.parent.mkdir()
    before.touch()
    os.truncate(before, 1024**3 - 150)
    with pytest.raises(ContentNotSupported, match="reached the limit of"):
        await kept(tmp_path, image(), image())
    assert files_in(tmp_path) == [before]


async def test_the_model_is_not_asked_for_where_there_are_no_files(tmp_path: Path) -> None:
    async def no_model() -> str | None:
        raise AssertionError("asked for")

    parts = (MessagePart(text="a"), MessagePart(data={"n": 1}), MessagePart(url="https://example.org/a.png"))
    assert await AttachedFiles(tmp_path, lambda _: RULES).keep("task", parts, no_model) == ()


@pytest.mark.parametrize("raw", ["AAA", "AAAA\u202e"])
async def test_a_file_that_is_not_base64_is_refused_by_its_name(tmp_path: Path, raw: str) -> None:
    with pytest.raises(ContentNotSupported, match=r"the file a\.png cannot be read: expected base64"):
        await kept(tmp_path, image(), MessagePart(raw=raw, media_type="image/png", filename="a.png"))
    assert files_in(tmp_path) == []


async def test_files_are_stored_for_other_servers_or_the_message_is_refused(tmp_path: Path) -> None:
    stored: list[tuple[str, list[bytes]]] = []

    async def store(task_id: str, names: Sequence[str]) -> None:
        stored.append((task_id, [(tmp_path / task_id / name).read_bytes() for name in names]))

    async def fail(task_id: str, names: Sequence[str]) -> None:
        raise JournalUnavailable("away")

    await AttachedFiles(tmp_path, lambda _: RULES, store).keep("task", (image(), image()), own_model)
    assert stored == [("task", [PNG, PNG])]
    with pytest.raises(JournalUnavailable):
        await AttachedFiles(tmp_path, lambda _: RULES, fail).keep("other", (image(), image()), own_model)
    assert files_in(tmp_path / "other") == []
