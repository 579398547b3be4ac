"""Media on the wire of each provider: their position, omitted media, and the reaction to a refusal."""

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from isthmus.media import Media
from isthmus.models import attachments
from isthmus.models.catalogue.facts import ModelOverride
from isthmus.models.port.base import Message, ModelErrorKind, ModelRequest, ModelToolResult, Retrying, Text, ToolRequest
from support.model_bench import ANTHROPIC, GEMINI, OPENAI, QUESTION, RESPONSES, Provider, bench, each_provider
from support.scripted_wire import Failure, Reply, Say

pytestmark = pytest.mark.anyio

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DATA = base64.b64encode(PNG).decode()
JPEG = b"\xff\xd8\xff\xe0" + bytes(60)
CALL = Message("assistant", (ToolRequest("call_1", "glob", {}),))


def file(folder: Path, name: str, data: bytes = PNG, media_type: str = "image/png") -> Media:
    path = folder / name
    path.write_bytes(data)
    return Media(media_type, path)


def asking(*parts: Any) -> ModelRequest:
    return ModelRequest("", (Message("user", (Text("Look."),)), CALL, Message("user", parts)), QUESTION.tools)


def result(*media: Media, content: str = "two things", is_error: bool = False) -> ModelToolResult:
    return ModelToolResult("call_1", "glob", content, is_error, media)


async def sent(provider: Provider, *parts: Any, model: str = "test-model") -> Any:
    """Return the last content or message, or messages, of the request's JSON."""
    async with bench(provider, Reply.of(Say("ok")), model=model) as it:
        await it.answer(asking(*parts))
        return it.wire.model_requests[0].json


def gemini_parts(body: Any) -> list[Any]:
    return body["contents"][-1]["parts"]


def anthropic_blocks(body: Any) -> list[Any]:
    return [{**block, "cache_control": None} for block in body["messages"][-1]["content"]]


def texts_of(value: Any) -> str:
    """Return every text of a body that is not base64, on a line of its own."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return "\n".join(texts_of(item) for name, item in items.items() if name not in ("data", "url"))
    if isinstance(value, list):
        return "\n".join(map(texts_of, cast("list[Any]", value)))
    return str(value)


@pytest.mark.requirement("MCP-148", "MCP-149")
async def test_gemini_gets_text_as_one_function_response_and_media_as_inline_data_parts(
    tmp_path: Path,
) -> None:
    image, sound = file(tmp_path, "a.png"), file(tmp_path, "b.wav", b"RIFF....WAVE", "audio/x-wav")
    parts = gemini_parts(await sent(GEMINI, result(image, sound), model="gemini-2.5-flash"))
    assert parts == [
        {"functionResponse": {"name": "glob", "response": {"output": "two things"}}},
        {"inlineData": {"mimeType": "image/png", "data": DATA}},
        {"inlineData": {"mimeType": "audio/wav", "data": base64.b64encode(b"RIFF....WAVE").decode()}},
    ]


@pytest.mark.requirement("MCP-149")
async def test_gemini_3_gets_images_inside_of_the_function_response_and_sound_beside_it(tmp_path: Path) -> None:
    image, sound = file(tmp_path, "a.png"), file(tmp_path, "b.mp3", b"ID3", "audio/mpeg")
    parts = gemini_parts(await sent(GEMINI, result(image, sound), model="gemini-3-pro-preview"))
    inside = [{"inlineData": {"mimeType": "image/png", "data": DATA}}]
    assert parts == [
        {"functionResponse": {"name": "glob", "response": {"output": "two things"}, "parts": inside}},
        {"inlineData": {"mimeType": "audio/mp3", "data": "SUQz"}},
    ]


async def test_anthropic_gets_images_and_documents_as_blocks_of_the_result(tmp_path: Path) -> None:
    image, document = file(tmp_path, "a.png"), file(tmp_path, "b.pdf", b"%PDF-1.7", "application/pdf")
    (block,) = anthropic_blocks(await sent(ANTHROPIC, result(image, document)))
    assert block["content"] == [
        {"type": "text", "text": "two things"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="}},
    ]


async def test_anthropic_gets_the_images_of_a_failed_call_behind_the_results(tmp_path: Path) -> None:
    two_calls = Message("assistant", (ToolRequest("a", "glob", {}), ToolRequest("b", "glob", {})))
    results = (
        ModelToolResult("a", "glob", "bad", True, (file(tmp_path, "a.png"),)),
        ModelToolResult("b", "glob", "good"),
    )
    request = ModelRequest("", (Message("user", (Text("Look."),)), two_calls, Message("user", (*results, Text("go")))))
    async with bench(ANTHROPIC, Reply.of(Say("ok"))) as it:
        await it.answer(request)
        blocks = anthropic_blocks(it.wire.model_requests[0].json)
    assert [block["type"] for block in blocks] == ["tool_result", "tool_result", "image", "text"]
    assert blocks[0]["content"] == "bad"


async def test_openai_gets_the_images_of_results_in_the_message_after_them(tmp_path: Path) -> None:
    body = await sent(OPENAI, result(file(tmp_path, "a.png")), Text("And now?"))
    tool, user = body["messages"][-2:]
    assert (tool["role"], tool["content"]) == ("tool", "two things")
    assert user == {
        "role": "user",
        "content": [
            {"type": "text", "text": "What the call of glob above gave besides its text:"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
            {"type": "text", "text": "And now?"},
        ],
    }


@each_provider
async def test_an_image_of_the_users_message_goes_out_in_its_place(provider: Provider, tmp_path: Path) -> None:
    body = await sent(provider, result(), Text("before"), file(tmp_path, "a.png"), Text("after"))
    said = str(body)
    assert said.count(DATA) == 1
    assert said.index("before") < said.index(DATA) < said.index("after")


def _gone(folder: Path) -> Media:
    return Media("image/png", folder / "gone.png")


def _pipe(folder: Path) -> Media:
    os.mkfifo(folder / "pipe.png")
    return Media("image/png", folder / "pipe.png")


def _linked(folder: Path) -> Media:
    (folder / "link.png").symlink_to("/etc/hostname")
    return Media("image/png", folder / "link.png")


UNSENT: list[tuple[Callable[[Path], Media], str]] = [
    (_gone, "not shown, its file cannot be read (No such file or directory)]"),
    (_pipe, "not shown, it is not a regular file]"),
    (_linked, "not shown, its file cannot be read ("),
    (lambda folder: file(folder, "empty.png", b""), "not shown, it is empty]"),
    (lambda folder: file(folder, "lie.png", b"<html>"), "not shown, its bytes are not an image of a known kind"),
    (
        lambda folder: file(folder, "a.zip", b"PK", "application/zip"),
        "not shown, the model does not accept application/",
    ),
    (lambda folder: file(folder, "big.png", PNG + bytes(16_000_000)), "not shown, it has more than the "),
    (lambda folder: Media("image/png", folder / "a\0b"), "not shown, its file cannot be read (embedded null byte"),
]


@each_provider
@pytest.mark.parametrize(("make", "note"), UNSENT)
async def test_what_cannot_be_sent_is_a_line_that_says_where_it_is_and_why(
    provider: Provider, make: Callable[[Path], Media], note: str, tmp_path: Path
) -> None:
    media = make(tmp_path)
    said = texts_of(await sent(provider, result(media), media))
    assert said.count(f"[{media.media_type} in {media.path}: {note}") == 2


@each_provider
async def test_an_image_is_called_what_it_is(provider: Provider, tmp_path: Path) -> None:
    assert "image/jpeg" in str(await sent(provider, result(file(tmp_path, "a.png", JPEG))))


@each_provider
async def test_of_many_images_the_last_ones_are_sent(provider: Provider, tmp_path: Path) -> None:
    media = [file(tmp_path, f"{number}.png") for number in range(21)]
    body = await sent(provider, result(media[0]), *media[1:])
    assert str(body).count(DATA) == 20
    assert f"[image/png in {media[0].path}: not shown, only the last 20 are shown]" in texts_of(body)


@pytest.mark.slow
@each_provider
async def test_a_request_has_no_more_than_the_provider_takes_of_all_images_together(
    provider: Provider, tmp_path: Path
) -> None:
    each = 3_000_000
    media = [file(tmp_path, f"{number}.png", PNG + bytes(each)) for number in range(8)]
    said = texts_of(await sent(provider, result(), *media))
    left_out = said.count("not shown, the media after it fill the request]")
    assert 1 <= left_out <= 4
    assert f"[image/png in {media[0].path}: not shown, the media after it" in said
    assert f"[image/png in {media[7].path}" not in said


@each_provider
async def test_an_image_that_a_provider_refuses_costs_one_request_and_no_conversation(
    provider: Provider, tmp_path: Path
) -> None:
    good, bad = file(tmp_path, "good.png"), file(tmp_path, "bad.png")
    refusal = Failure(400, "Unable to process input image")
    replies = (Reply.of(Say("one")), refusal, Reply.of(Say("two")), Reply.of(Say("three")))
    async with bench(provider, *replies) as it:
        await it.answer(asking(result(good)))
        items = await it.ask(asking(result(good, bad)))
        await it.answer(asking(result(good, bad), Text("more")))
        bodies = [str(request.json) for request in it.wire.model_requests]
    told = [item for item in items if isinstance(item, Retrying)]
    assert len(told) == 1
    assert "Unable to process input image" in told[0].reason
    # Media that were accepted before are not suspected; refused media are not sent again.
    assert [body.count(DATA) for body in bodies] == [1, 2, 1, 1]
    assert f"[image/png in {bad.path}: not shown, the provider refused it]" in bodies[3]


@each_provider
async def test_a_request_refused_for_another_reason_is_that_error_and_drops_no_image(
    provider: Provider, tmp_path: Path
) -> None:
    image = file(tmp_path, "a.png")
    refusal = Failure(400, "tools.0: bad schema")
    async with bench(provider, refusal, refusal, Reply.of(Say("ok"))) as it:
        error = await it.error(asking(result(image)))
        assert error.kind is ModelErrorKind.BAD_REQUEST
        await it.answer(asking(result(image)))
        assert [str(request.json).count(DATA) for request in it.wire.model_requests] == [1, 0, 1]


async def test_sound_is_suspected_before_images_are(tmp_path: Path) -> None:
    image, sound = file(tmp_path, "a.png"), file(tmp_path, "b.mp3", b"ID3", "audio/mpeg")
    refusal = Failure(400, "Unsupported MIME type: audio/mp3")
    async with bench(GEMINI, refusal, Reply.of(Say("ok"))) as it:
        (retrying, *_) = await it.ask(asking(result(image, sound)))
        assert isinstance(retrying, Retrying)
        assert retrying.reason.endswith("The request is repeated without 1 file (audio/mpeg).")
        last = str(it.wire.model_requests[1].json)
    assert DATA in last
    assert f"[audio/mpeg in {sound.path}: not shown, the provider refused it]" in last


async def test_what_was_taken_before_is_left_out_at_last(tmp_path: Path) -> None:
    """Refuse media that were accepted before: another model may have replaced it under the same name."""
    old, new = file(tmp_path, "old.png"), file(tmp_path, "new.png")
    refusal = Failure(400, "This model does not support images")
    async with bench(OPENAI, Reply.of(Say("1")), refusal, refusal, Reply.of(Say("2"))) as it:
        await it.answer(asking(result(old)))
        await it.answer(asking(result(old, new)))
        assert [str(request.json).count(DATA) for request in it.wire.model_requests] == [1, 2, 1, 0]


async def test_a_local_server_without_eyes_is_asked_again_without_images(tmp_path: Path) -> None:
    blind = Failure(500, "image input is not supported - hint: you may need to provide the mmproj")
    async with bench(OPENAI, blind, Reply.of(Say("ok"))) as it:
        await it.answer(asking(result(file(tmp_path, "a.png"))))
        assert [str(request.json).count(DATA) for request in it.wire.model_requests] == [1, 0]


@each_provider
async def test_results_of_calls_that_a_compaction_cut_off_keep_their_images(provider: Provider, tmp_path: Path) -> None:
    lost = ModelToolResult("gone", "glob", "lost", media=(file(tmp_path, "a.png"),))
    body = await sent(provider, result(), lost)
    assert str(body).count(DATA) == 1


def test_media_of_a_conversation_are_found_in_their_order(tmp_path: Path) -> None:
    first, second, third = (Media("image/png", tmp_path / name) for name in "abc")
    messages: Sequence[Message] = asking(result(first, second), Text("x"), third).messages
    assert list(attachments.media_of(messages)) == [first, second, third]


@pytest.mark.parametrize(
    ("provider", "model"), [(OPENAI, "o3-mini"), (RESPONSES, "gpt-3.5-turbo"), (OPENAI, "openai/gpt-oss-20b")]
)
async def test_a_model_that_is_known_to_read_no_images_is_told_of_them(
    provider: Provider, model: str, tmp_path: Path
) -> None:
    image = file(tmp_path, "a.png")
    async with bench(provider, Reply.of(Say("ok")), model=model) as it:
        await it.answer(asking(result(image)))
        (request,) = it.wire.model_requests
    assert DATA not in str(request.json)
    assert f"[image/png in {image.path}: not shown, the model does not accept image/png]" in str(request.json)


async def test_a_model_of_which_the_user_says_that_it_reads_images_is_sent_them(tmp_path: Path) -> None:
    overrides = {"o3-mini": ModelOverride(media=frozenset(("image",)))}
    async with bench(OPENAI, Reply.of(Say("ok")), model="o3-mini", overrides=overrides) as it:
        await it.answer(asking(result(file(tmp_path, "a.png"))))
        assert DATA in str(it.wire.model_requests[0].json)
