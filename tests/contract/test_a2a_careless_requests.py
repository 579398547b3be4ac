"""Requests of careless, old and foreign clients: which are accepted, and the exact errors of the others."""

import asyncio
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.agent.session.turn import AgentTurn
from isthmus.events import StateChange, TaskState, TextContent
from isthmus.models.port.base import Text
from support.a2a_serving import TOKEN, RawClient, prompt, rpc, serving
from support.a2a_v1 import ACTIVE, PLAIN, Client, said
from support.agent_behind import behind
from support.agents import reply
from support.engines import engine_on
from support.script_agent import Serve, serve_with

pytestmark = pytest.mark.anyio


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    return serve_with("engine", tmp_path)


class TellingAgent:
    """An agent that replies with the model in its session's settings."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Run one turn."""
        await turn.emit(StateChange(TaskState.WORKING))
        said = f"{turn.session.settings.model if turn.session.settings else None} in {turn.session.workspace}"
        await turn.emit(TextContent("t", said))
        await turn.emit(replace(reply("t", Text(said))))
        return StateChange(TaskState.COMPLETED)


async def test_a_byte_order_mark_before_a_request_is_no_part_of_it(serve: Serve) -> None:
    async with serve() as raw:
        body = b"\xef\xbb\xbf" + json.dumps(rpc("tasks/get", {"id": "x"})).encode()
        assert (await raw.http.post(raw.url, content=body)).json()["error"]["code"] == -32001


async def test_a_number_that_could_not_be_given_back_is_refused(serve: Serve) -> None:
    async with serve() as raw:
        body = b'{"jsonrpc": "2.0", "id": 1e999, "method": "tasks/get", "params": {"id": "x"}}'
        answer = (await raw.http.post(raw.url, content=body)).json()
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        assert "1e999" in answer["error"]["message"]


@pytest.mark.parametrize("path", ["", "message:send"])
async def test_a_compressed_body_is_refused_with_the_encoding_that_is_read(serve: Serve, path: str) -> None:
    async with serve() as raw:
        body = gzip.compress(json.dumps(rpc("tasks/get", {"id": "x"})).encode())
        refused = await raw.http.post(raw.url + path, content=body, headers={"Content-Encoding": "gzip"})
        assert (refused.status_code, refused.headers["accept-encoding"]) == (415, "identity")
        assert "gzip" in refused.text
        plain = await raw.http.post(
            raw.url, json=rpc("tasks/get", {"id": "x"}), headers={"Content-Encoding": "identity"}
        )
        assert plain.json()["error"]["code"] == -32001


@pytest.mark.parametrize("method", ["message/send", "message/stream", "tasks/get", "SendMessage"])
async def test_a_last_event_id_is_of_no_concern_to_methods_that_follow_nothing(
    serve: Serve, workspace: Path, method: str
) -> None:
    async with serve() as raw:
        task = await raw.result("message/send", prompt("hello", workspace))
        params: dict[str, Any] = {"tasks/get": {"id": task["id"]}, "SendMessage": said("hello", workspace)}.get(
            method, prompt("hello", workspace)
        )
        headers = {**ACTIVE, "Last-Event-ID": "of-another-stream"} if method == "SendMessage" else {
            "A2A-Extensions": URI, "Last-Event-ID": "of-another-stream"
        }  # fmt: skip
        response = await raw.http.post(raw.url, json=rpc(method, params), headers=headers)
        assert '"error"' not in response.text


@pytest.mark.parametrize("seen", ["99", "-1", "x", "1.5", "9" * 30])
@pytest.mark.parametrize("method", ["tasks/resubscribe", "SubscribeToTask"])
async def test_an_event_that_never_was_is_refused_by_methods_that_follow(
    serve: Serve, workspace: Path, method: str, seen: str
) -> None:
    async with serve() as raw:
        task = await raw.result("message/send", prompt("hello", workspace))
        error = await raw.error(method, {"id": task["id"]}, {"Last-Event-ID": seen})
        assert error["code"] == -32602
        assert seen[:20] in error["message"]


@pytest.mark.parametrize(
    ("where", "code"), [("?A2A-Version=2.0", 400), ("?a2a-version=1.0", 404), ("?A2A-Version=", 404)]
)
async def test_the_version_may_be_a_parameter_of_the_request(serve: Serve, where: str, code: int) -> None:
    async with serve() as raw:
        response = await raw.http.get(raw.url + "tasks/unknown" + where)
        assert response.status_code == code
        assert response.json()["error"]["details"][0]["reason"] == (
            "VERSION_NOT_SUPPORTED" if code == 400 else "TASK_NOT_FOUND"
        )


async def test_the_header_tells_the_version_before_the_parameter(serve: Serve) -> None:
    async with serve() as raw:
        params = {"id": "unknown"}
        response = await raw.http.post(raw.url + "?A2A-Version=9.9", json=rpc("GetTask", params), headers=PLAIN)
        assert response.json()["error"]["code"] == -32001


async def test_members_that_are_null_are_not_set(serve: Serve, workspace: Path) -> None:
    async with serve() as raw:
        part = {"text": "hello", "raw": None, "url": None, "data": None, "filename": None, "mediaType": None}
        params = said("", workspace, parts=[part], taskId=None, contextId=None)
        task = (await Client(raw, "HTTP+JSON").call("SendMessage", params))["task"]
        assert task["history"][0]["parts"] == [{"text": "hello"}]


@pytest.mark.parametrize("name", ["input-required", "TASK_STATE_INPUT_REQUIRED", "6"])
async def test_a_state_is_filtered_by_its_name_in_either_version(serve: Serve, workspace: Path, name: str) -> None:
    async with serve() as raw:
        await raw.result("message/send", prompt("hello", workspace))
        waiting = await raw.result("message/send", prompt("edit", workspace))
        found = (await raw.http.get(raw.url + "tasks", params={"status": name}, headers=PLAIN)).json()
        assert [task["id"] for task in found["tasks"]] == [waiting["id"]]


@pytest.mark.parametrize("number", ["1", "99999999999999"])
async def test_a_history_may_be_asked_for_in_any_length(serve: Serve, workspace: Path, number: str) -> None:
    async with serve() as raw:
        task = await raw.result("message/send", prompt("hello", workspace))
        found = (await raw.http.get(raw.url + f"tasks/{task['id']}?historyLength={number}", headers=PLAIN)).json()
        assert len(found["history"]) == (1 if number == "1" else 2)


async def test_errors_over_http_are_of_the_media_type_and_form_of_1_0(serve: Serve) -> None:
    async with serve(options=ServerOptions(TOKEN, body_limit=1000)) as raw:
        asked = {
            401: raw.http.get(raw.url + "tasks", headers={"Authorization": "Bearer wrong"}),
            403: raw.http.get(raw.url + "tasks", headers={"Host": "elsewhere.example"}),
            404: raw.http.get(raw.url + "tasks/unknown", headers=PLAIN),
            405: raw.http.put(raw.url + "tasks"),
            413: raw.http.post(raw.url + "message:send", content=b"x" * 2000),
            400: raw.http.post(raw.url + "message:send", content=b"{", headers=PLAIN),
        }
        for status, request in asked.items():
            response = await request
            assert (response.status_code, response.headers["content-type"]) == (status, "application/json")
            error = response.json()["error"]
            assert error["code"] == status
            assert error["status"]
            assert error["message"]


async def test_an_id_in_a_path_may_hold_what_is_escaped_there(serve: Serve) -> None:
    async with serve() as raw:
        found = (await raw.http.get(raw.url + "tasks/a%2Fb%2541%3F", headers=PLAIN)).json()
        assert found["error"]["message"] == "Task not found: there is no task a/b%41?"
        found = await raw.http.post(raw.url + "message%3Asend", json={}, headers=PLAIN)
        assert "params.message" in found.json()["error"]["message"]


async def test_later_settings_may_name_single_fields_and_are_held_to_their_types(
    tmp_path: Path, workspace: Path
) -> None:
    async with engine_on(tmp_path, behind(TellingAgent()), workspace=workspace) as engine, serving(engine) as raw:
        first = await raw.result("message/send", prompt("hello", workspace))
        assert first["status"]["message"]["parts"][0]["text"] == f"None in {workspace}"
        for ids in ({"contextId": first["contextId"]}, {"taskId": first["id"]}):
            params = prompt("again", **ids, metadata={URI: {"model": "mine"}})
            later = await raw.result("message/send", params)
            assert later["status"]["message"]["parts"][0]["text"] == f"mine in {workspace}"
            error = await raw.error("message/send", prompt("again", **ids, metadata={URI: {"model": 5}}))
            assert (error["code"], "].model" in error["message"]) == (-32602, True)
        kept = prompt("again", contextId=first["contextId"], metadata={URI: {"kind": "STATE_CHANGE"}})
        assert (
            f"mine in {workspace}" in (await raw.result("message/send", kept))["status"]["message"]["parts"][0]["text"]
        )
        elsewhere = prompt("again", contextId="another", metadata={URI: {"model": "mine"}})
        assert "workspace_path is missing" in (await raw.error("message/send", elsewhere))["message"]


async def test_every_task_is_found_by_paging_and_none_twice_while_others_change(serve: Serve, workspace: Path) -> None:
    async with serve() as raw:
        client = Client(raw, "JSONRPC")
        made = [(await client.call("SendMessage", said("hello", workspace)))["task"]["id"] for _ in range(5)]
        first = await client.call("ListTasks", {"pageSize": 2})
        changed = (await client.call("SendMessage", said("more", taskId=made[0])))["task"]["id"]
        rest = await client.call("ListTasks", {"pageSize": 100, "pageToken": first["nextPageToken"]})
        seen = [task["id"] for page in (first, rest) for task in page["tasks"]]
        assert (changed, seen) == (made[0], made[:0:-1])
        assert (rest["nextPageToken"], rest["totalSize"]) == ("", 5)


async def test_a_card_that_a_client_has_is_not_sent_again(serve: Serve) -> None:
    async with serve() as raw:
        path = raw.url + ".well-known/agent-card.json"
        first = await raw.http.get(path)
        assert "max-age=" in first.headers["cache-control"]
        again = await raw.http.get(path, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        other = await raw.http.get(path, headers={"If-None-Match": '"other"'})
        assert (other.status_code, other.json()) == (200, first.json())


async def test_a_request_behind_an_offer_of_http_2_is_never_left_waiting(serve: Serve) -> None:
    """Send the upgrade that Java's HttpClient and ``curl --http2`` offer, and a second request in the same packet."""
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    async with serve() as raw:
        url = httpx2.URL(raw.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = f"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {url.netloc.decode()}\r\n"
        writer.write(f"{head}{offer}\r\n{head}Connection: close\r\n\r\n".encode())
        async with asyncio.timeout(30):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"HTTP/1.1 200 ") == 2 or b"\r\nconnection: close\r\n" in answer


async def test_a_tunnel_is_refused(serve: Serve) -> None:
    async with serve() as raw:
        url = httpx2.URL(raw.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = f"CONNECT {url.netloc.decode()} HTTP/1.1\r\nHost: {url.netloc.decode()}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        async with asyncio.timeout(30):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert re.match(rb"HTTP/1.1 40[0145] ", answer)
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("head", ["", f"Authorization: Bearer {TOKEN}\r\n"])
async def test_a_body_that_cannot_be_read_is_refused_once_and_leaves_no_traceback(
    serve: Serve, caplog: pytest.LogCaptureFixture, method: str, begins: bool, head: str
) -> None:
    async with serve() as raw:
        url = httpx2.URL(raw.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(f"{method} / HTTP/1.1\r\nHost: {url.netloc.decode()}\r\n{head}".encode())
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n" + (b"1\r\n{\r\n" if begins else b"") + b"no size\r\n")
        async with asyncio.timeout(30):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert "Exception" not in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("number", ["2", 2.0, "2e0", "2.0"])
async def test_a_number_may_be_written_in_every_way_of_protojson(serve: Serve, workspace: Path, number: Any) -> None:
    async with serve() as raw:
        old = prompt("hello", workspace)
        task = await raw.result("message/send", {**old, "configuration": {"historyLength": number}})
        assert len(task["history"]) == 2
        assert len((await raw.result("tasks/get", {"id": task["id"], "historyLength": number}))["history"]) == 2
        for binding in ("JSONRPC", "HTTP+JSON"):
            client, params = Client(raw, binding), said("hello", workspace)
            params["configuration"] = {"historyLength": number}
            sent = (await client.call("SendMessage", params))["task"]
            assert len(sent["history"]) == 2
            assert len((await client.call("GetTask", {"id": sent["id"], "historyLength": number}))["history"]) == 2
            assert (await client.call("ListTasks", {"pageSize": number}))["pageSize"] == 2


@pytest.mark.parametrize("number", ["", " 2", "2.5", 2.5, "1e-1", "x", "-1", -1, True, "0x2", "02", "1e999", []])
async def test_what_is_not_a_whole_number_is_refused_with_its_name(serve: Serve, number: Any) -> None:
    async with serve() as raw:
        for method in ("tasks/get", "GetTask"):
            error = await raw.error(method, {"id": "x", "historyLength": number})
            assert (error["code"], "params.historyLength" in error["message"]) == (-32602, True)


@pytest.mark.parametrize("servers", [{}, [], None])
async def test_no_servers_may_be_any_empty_value(serve: Serve, workspace: Path, servers: Any) -> None:
    async with serve() as raw:
        for name in ("mcp_servers", "mcpServers"):
            settings = {"workspace_path": str(workspace), name: servers}
            task = await raw.result("message/send", prompt("hello", metadata={URI: settings}))
            assert task["status"]["state"] == "completed"
        settings = {"workspace_path": str(workspace), "mcp_servers": {"name": "tickets"}}
        error = await raw.error("message/send", prompt("hello", metadata={URI: settings}))
        assert "mcp_servers is not a list" in error["message"] or "mcp_servers: expected a list" in error["message"]


async def test_a_client_of_http_1_0_gets_bodies_that_end_with_the_connection(serve: Serve, workspace: Path) -> None:
    async with serve() as raw:
        for method in ("message/stream", "message/send"):
            body = json.dumps(rpc(method, prompt("hello", workspace))).encode()
            head, content = await _asked_by_1_0(raw, b"POST / ", body)
            assert b"transfer-encoding" not in head.lower()
            events = [json.loads(line[6:]) for line in content.splitlines() if line.startswith(b"data: ")]
            last = (events or [json.loads(content)])[-1]
            assert last["result"]["status"]["state"] == "completed"
        head, content = await _asked_by_1_0(raw, b"GET /.well-known/agent-card.json ", b"")
        assert b"transfer-encoding" not in head.lower()
        assert json.loads(content)["name"]


async def _asked_by_1_0(raw: RawClient, request: bytes, body: bytes) -> tuple[bytes, bytes]:
    """Return head and body of the answer to a request of HTTP/1.0, whose connection must then end."""
    url = urlsplit(raw.url)
    async with asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        head = [request + b"HTTP/1.0", b"Host: localhost", b"Content-Type: application/json"]
        head += [b"Authorization: Bearer %s" % TOKEN.encode(), b"X-A2A-Extensions: %s" % URI.encode()]
        writer.write(b"\r\n".join([*head, b"Content-Length: %d" % len(body), b"", body]))
        answer, _, content = (await reader.read(-1)).partition(b"\r\n\r\n")
        writer.close()
        return answer, content
