"""The size of files in messages: one rule for every agent and every protocol."""

import base64

import pytest

from isthmus.client import ContentNotSupported
from isthmus.engine.requests.attachments import check_sizes
from isthmus.events import MessagePart
from isthmus.media import MAXIMUM_FILE_BYTES, MAXIMUM_MESSAGE_BYTES


def file(size: int, name: str | None = "a.png") -> MessagePart:
    return MessagePart(raw=base64.b64encode(bytes(size)).decode(), media_type="image/png", filename=name)


def test_files_up_to_the_limits_are_accepted() -> None:
    check_sizes([MessagePart(text="Look."), MessagePart(url="https://example.org/"), file(0)])
    for size in (MAXIMUM_FILE_BYTES, MAXIMUM_FILE_BYTES - 1, MAXIMUM_FILE_BYTES - 2):
        check_sizes([file(size)])
    check_sizes([file(MAXIMUM_FILE_BYTES), file(MAXIMUM_MESSAGE_BYTES - MAXIMUM_FILE_BYTES)])


def test_a_file_that_is_too_large_is_refused_with_its_size_and_the_limit() -> None:
    with pytest.raises(ContentNotSupported, match=r"the file a\.png has 15,000,001 bytes; .* at most 15,000,000"):
        check_sizes([file(MAXIMUM_FILE_BYTES + 1)])
    with pytest.raises(ContentNotSupported, match="the file of the type image/png has 15,000,002 bytes"):
        check_sizes([file(1), file(MAXIMUM_FILE_BYTES + 2, None)])


def test_files_that_are_too_large_together_are_refused_with_size_and_limit() -> None:
    with pytest.raises(ContentNotSupported, match=r"have 30,000,001 bytes; all together .* at most 30,000,000"):
        check_sizes([file(MAXIMUM_FILE_BYTES), file(MAXIMUM_FILE_BYTES), file(1)])
