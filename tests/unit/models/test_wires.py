import json
from typing import Any

import httpx2
import pytest

from support.anthropic_wire import AnthropicWire
from support.gemini_wire import GeminiWire
from support.openai_wire import OpenAIWire
from support.scripted_wire import Call, Failure, Reply, Say, ScriptedWire, replies_of_yaml
from support.waiting import eventually
from support.wire_server import Answer, Hold, WireServer, in_pieces_of

PATHS: dict[type[ScriptedWire], str] = {
    GeminiWire: "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
    AnthropicWire: "/v1/messages",
    OpenAIWire: "/chat/completions",
}
WIRES = [pytest.param(wire, id=wire.provider) for wire in PATHS]


def post(wire: ScriptedWire) -> httpx2.Response:
    return httpx2.post(wire.base_url + PATHS[type(wire)], json={"model": "m", "stream": True}, trust_env=False)


def events(body: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("wire_type", WIRES)
def test_a_reply_split_into_single_bytes_arrives_whole(wire_type: type[ScriptedWire]) -> None:
    reply = Reply.of(Say("Grüße, 世界"), Call("glob", {"pattern": "ü*"}), piece_size=1)
    with wire_type([reply]) as wire:
        response = post(wire)
    assert response.headers["content-type"] == "text/event-stream"
    assert len(events(response.text)) >= 2
    assert "Grüße, 世界" in response.text
    assert [request.json["model"] for request in wire.model_requests] == ["m"]


@pytest.mark.parametrize("wire_type", WIRES)
def test_a_used_up_script_is_an_error_that_says_so(wire_type: type[ScriptedWire]) -> None:
    with wire_type() as wire:
        response = post(wire)
    assert response.status_code == 500
    assert "no more replies" in response.text
    assert wire.unexpected == 1


@pytest.mark.parametrize("wire_type", WIRES)
def test_a_cut_ends_the_connection_in_the_middle_of_the_body(wire_type: type[ScriptedWire]) -> None:
    with wire_type([Reply.of(Say("Hello"), cut_after=40)]) as wire, pytest.raises(httpx2.RemoteProtocolError):
        post(wire)


@pytest.mark.parametrize("wire_type", WIRES)
def test_the_wire_sees_that_a_client_left_while_it_held_the_answer(wire_type: type[ScriptedWire]) -> None:
    with wire_type([Reply.of(Say("Hello"), hold=Hold())]) as wire:
        with (
            httpx2.Client(trust_env=False) as client,
            client.stream("POST", wire.base_url + PATHS[wire_type], json={"stream": True}) as response,
        ):
            # An abandoned generator closes the response.
            pieces = response.iter_bytes()
            assert next(pieces)
            assert not wire.requests[0].disconnected.is_set()
        assert eventually(wire.requests[0].disconnected.is_set)


def test_a_held_answer_goes_on_when_it_is_released() -> None:
    hold = Hold()
    with (
        WireServer(lambda request: Answer(pieces=(b"one", hold, b"two"))) as server,
        httpx2.Client(trust_env=False) as client,
        client.stream("GET", server.base_url) as response,
    ):
        pieces = response.iter_bytes()
        assert next(pieces) == b"one"
        hold.release()
        assert b"".join(pieces) == b"two"
        assert eventually(server.requests[0].answered.is_set)


def test_one_connection_serves_several_requests() -> None:
    with WireServer(lambda request: Answer.json({"path": request.path})) as server, httpx2.Client() as client:
        answers = [client.get(f"{server.base_url}/{number}").json()["path"] for number in range(3)]
    assert answers == ["/0", "/1", "/2"]


def test_gemini_answers_without_a_stream_and_counts_tokens() -> None:
    with GeminiWire([Reply.of(Say("a", "b"))]) as wire:
        whole = httpx2.post(wire.base_url + "/v1beta/models/m:generateContent", json={}, trust_env=False).json()
        count = httpx2.post(wire.base_url + "/v1beta/models/m:countTokens", json={}, trust_env=False).json()
    assert [part["text"] for part in whole["candidates"][0]["content"]["parts"]] == ["a", "b"]
    assert count["totalTokens"] >= 1


def test_a_script_file_holds_replies_and_failures() -> None:
    replies = replies_of_yaml("- {text: hi, call: {name: glob, arguments: {pattern: '*'}}}\n- {status: 429}\n")
    assert replies == [Reply.of(Say("hi"), Call("glob", {"pattern": "*"})), Failure(429)]


def test_pieces_of_one_byte_join_to_the_whole() -> None:
    assert b"".join(in_pieces_of("世".encode(), 1)) == "世".encode()
