"""Messages as lines of JSON: the forms that are taken, and the lines that are refused."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.events import MessagePart
from isthmus.terminal.headless.input_messages import InputLineError, InputLines, InputMessage

SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
IMAGE = {"type": "image", "source": SOURCE}


def line(content: Any, **fields: Any) -> bytes:
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}, **fields}).encode() + b"\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Hello", InputMessage("Hello")),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], InputMessage("one\n\ntwo")),
        (
            [IMAGE, {"type": "text", "text": "See it."}],
            InputMessage("See it.", (MessagePart(raw="iVBORw==", media_type="image/png"),)),
        ),
        ([IMAGE], InputMessage("See the attached file.", (MessagePart(raw="iVBORw==", media_type="image/png"),))),
    ],
)
def test_a_line_is_a_message(content: Any, message: InputMessage) -> None:
    assert list(InputLines().feed(line(content, session_id="", parent_tool_use_id=None))) == [message]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"hello", "expected JSON"),
        (b"[]", "the line: expected an object, received list"),
        (b"[" * 100_000, "nested at most"),
        (b'"\\ud800"', "half of a surrogate pair"),
        (b"\xff", "not UTF-8"),
        (b'{"type": "control_request"}', 'expected "type": "user", received \'control_request\''),
        (b'{"type": {}}', "received dict"),
        (b'{"type": "user"}', "message: expected an object, received nothing"),
        (b'{"type": "user", "message": {"role": "assistant", "content": "x"}}', "received 'assistant'"),
        (line(3), "message.content: expected a text or a list of blocks, received int"),
        (line(" "), "message.content: expected a text or a file, received none"),
        (line([]), "message.content: expected a text or a file, received none"),
        (line([{"type": "tool_result"}]), "message.content[0].type: expected text, image or document"),
        (line([{"type": "text"}]), "message.content[0].text: expected a text, received nothing"),
        (line([{"type": "image", "source": {"type": "url", "url": "http://x"}}]), "source.type: expected base64"),
        (line([IMAGE, {**IMAGE, "source": SOURCE | {"data": "a"}}]), "message.content[1].source.data"),
        (line([{"type": "text", "text": "x"}] * 1001), "expected at most 1000 blocks, received 1001"),
        (line("x" * 2_000_000), "expected at most 1000000 bytes"),
    ],
)
def test_a_line_of_another_form_is_refused_with_its_number(text: bytes, problem: str) -> None:
    lines = InputLines(1_000_000)
    assert len(list(lines.feed(line("first") + b"\n"))) == 1
    with pytest.raises(InputLineError) as refused:
        list(lines.feed(text.rstrip(b"\n") + b"\n"))
    assert str(refused.value).startswith("line 3 of the standard input: ")
    assert problem in str(refused.value)
    assert len(str(refused.value)) < 400


def test_the_last_line_needs_no_newline() -> None:
    lines = InputLines()
    assert list(lines.feed(line("a") + line("b")[:-1])) == [InputMessage("a")]
    assert list(lines.end()) == [InputMessage("b")]
    assert list(InputLines().end()) == []


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=4), st.integers(1, 7))
def test_the_chunks_of_the_input_do_not_matter(texts: list[str], size: int) -> None:
    whole = b"".join(line(text) for text in texts)
    lines = InputLines()
    read = [message.text for at in range(0, len(whole), size) for message in lines.feed(whole[at : at + size])]
    assert read == texts


def test_data_that_only_looks_like_base64_is_refused() -> None:
    assert base64.b64decode("iVBO!Rw==")  # the library ignores other characters
    with pytest.raises(InputLineError, match="expected base64"):
        list(InputLines().feed(line([{"type": "image", "source": SOURCE | {"data": "iVBO!Rw=="}}])))
