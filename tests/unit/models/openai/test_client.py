"""Tests of requests to OpenAI that differ in their body alone."""

import json

import httpx2
import pytest
from openai import AsyncOpenAI, AsyncStream

from isthmus.models.openai.client import RepeatingClient

pytestmark = pytest.mark.anyio


async def test_later_requests_are_as_the_sdk_makes_them() -> None:
    received: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        received.append(request)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=b"data: [DONE]\n\n")

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        client = RepeatingClient(api_key="key", base_url="http://localhost/v1", max_retries=0, http_client=http)
        for number in (1, 22):
            content = json.dumps({"number": number}).encode()
            async with await client.post(
                "/chat/completions", content=content, cast_to=object, stream=True, stream_cls=AsyncStream[object]
            ):
                pass
    assert hasattr(AsyncOpenAI, "_build_request")  # which the client overrides, although it is not public
    first, second = received
    assert [request.content for request in received] == [b'{"number": 1}', b'{"number": 22}']
    assert (second.method, str(second.url)) == ("POST", "http://localhost/v1/chat/completions")
    assert second.headers["authorization"] == "Bearer key"
    assert second.headers["content-type"] == "application/json"
    assert dict(second.headers) == {**first.headers, "content-length": "14"}
