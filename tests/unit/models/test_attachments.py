"""Which media of a conversation are sent: the newest, and over many messages the same, since providers cache them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.media import Media
from isthmus.models.attachments import MAXIMUM_COUNT, Attachments, read_attachments
from isthmus.models.endpoint.providers import GEMINI
from isthmus.models.port.base import Message, ModelToolResult, Text

PNG = b"\x89PNG\r\n\x1a\n"
RULES = GEMINI.media


def image(folder: Path, number: int, size: int = 100) -> Media:
    path = folder / f"{number}.png"
    path.write_bytes(PNG + bytes(size - len(PNG)))
    return Media("image/png", path)


def conversation(groups: Sequence[Sequence[Media]]) -> list[Message]:
    messages: list[Message] = []
    for number, media in enumerate(groups):
        messages.append(Message("user", (ModelToolResult(f"c{number}", "shot", "", media=tuple(media)),)))
        messages.append(Message("assistant", (Text("Seen."),)))
    return messages


def numbers(found: Attachments) -> list[int]:
    return sorted(int(media.path.stem) for media in found.sent)


@pytest.mark.parametrize(("total", "most"), [(10_000_000, 6), (1_000, 12)])
def test_more_images_change_what_was_sent_of_earlier_ones_seldom(tmp_path: Path, total: int, most: int) -> None:
    rules = replace(RULES, maximum_total=total)
    images = [image(tmp_path, number) for number in range(60)]
    changes, before = 0, set[int]()
    for count in range(1, 61):
        found = read_attachments(conversation([[media] for media in images[:count]]), rules)
        now = set(numbers(found))
        assert max(now) == count - 1
        assert len(now) <= MAXIMUM_COUNT
        assert len(now) * 100 <= total
        changes += not before <= now
        before = now
    assert 0 < changes <= most


def test_all_images_of_the_newest_message_are_sent_if_they_fit(tmp_path: Path) -> None:
    images = [image(tmp_path, number) for number in range(38)]
    found = read_attachments(conversation([images[:19], images[19:]]), RULES)
    assert numbers(found) == list(range(19, 38))
    assert found.left_out[images[0]] == "only the last 20 are shown"
    many = read_attachments(conversation([images[:5], images[5:]]), RULES)
    assert numbers(many) == list(range(18, 38))


def test_an_image_that_cannot_be_sent_takes_no_room(tmp_path: Path) -> None:
    gone = [Media("image/png", tmp_path / f"gone{number}.png") for number in range(30)]
    images = [image(tmp_path, number) for number in range(15)]
    found = read_attachments(conversation([images, gone]), RULES)
    assert numbers(found) == list(range(15))
    assert "cannot be read" in found.left_out[gone[0]]


def test_a_refused_image_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    images = [image(tmp_path, number) for number in range(30)]
    messages = conversation([[media] for media in images])
    before = numbers(read_attachments(messages, RULES))
    after = numbers(read_attachments(messages, RULES, frozenset((images[-1],))))
    assert after == before[:-1]
