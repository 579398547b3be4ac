"""Tests of requests to OpenAI that differ in their body alone."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest
from openai import APIStatusError, AsyncOpenAI, RateLimitError

from isthmus.models.openai.client import RepeatingClient

pytestmark = pytest.mark.anyio

Answer = Callable[[httpx2.Request], httpx2.Response]


@asynccontextmanager
async def opened(answer: Answer) -> AsyncGenerator[RepeatingClient]:
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        yield RepeatingClient(api_key="key", base_url="http://localhost/v1", max_retries=0, http_client=http)


def events(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=b"data: [DONE]\n\n")


async def test_later_requests_are_as_the_sdk_makes_them() -> None:
    received: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        received.append(request)
        return events(request)

    async with opened(answer) as client:
        for number in (1, 22):
            async with client.streamed("/chat/completions", json.dumps({"number": number}).encode()) as response:
                assert await response.aread() == b"data: [DONE]\n\n"
            assert response.is_closed
    assert all(hasattr(AsyncOpenAI, name) for name in ("_build_request", "_make_status_error_from_response"))
    first, second = received
    assert [request.content for request in received] == [b'{"number": 1}', b'{"number": 22}']
    assert (second.method, str(second.url)) == ("POST", "http://localhost/v1/chat/completions")
    assert second.headers["authorization"] == "Bearer key"
    assert second.headers["content-type"] == "application/json"
    assert dict(second.headers) == {**first.headers, "content-length": "14"}


async def test_later_requests_do_without_the_sdks_own_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(events) as client:
        async with client.streamed("/responses", b"{}"):
            pass
        monkeypatch.delattr(AsyncOpenAI, "_send_request")
        async with client.streamed("/responses", b"{}") as response:
            assert response.status_code == 200


async def test_errors_of_later_requests_are_the_sdks_own() -> None:
    replies = [httpx2.Response(429, json={"error": {"message": f"slow {number}", "code": "c"}}) for number in (1, 2)]
    replies.append(httpx2.Response(302, headers={"location": "/"}))
    failures: list[APIStatusError] = []
    async with opened(lambda _: replies.pop(0)) as client:
        while replies:
            with pytest.raises(APIStatusError) as failed:
                async with client.streamed("/chat/completions", b"{}"):
                    pass
            failures.append(failed.value)
            assert failed.value.response.is_closed
    first, second, third = failures
    assert isinstance(first, RateLimitError)
    assert isinstance(second, RateLimitError)
    assert (first.body, second.body) == ({"message": "slow 1", "code": "c"}, {"message": "slow 2", "code": "c"})
    assert second.message == first.message.replace("1", "2")
    assert third.status_code == 302


async def test_a_connection_that_breaks_is_an_error_of_its_own() -> None:
    def broken(request: httpx2.Request) -> httpx2.Response:
        if answered:
            raise httpx2.ConnectError("refused", request=request)
        answered.append(True)
        return events(request)

    answered: list[bool] = []
    async with opened(broken) as client:
        async with client.streamed("/chat/completions", b"{}"):
            pass
        with pytest.raises(httpx2.ConnectError, match="refused"):
            async with client.streamed("/chat/completions", b"{}"):
                pass
