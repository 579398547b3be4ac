"""The targets of push notifications: their owners, their number, and the addresses that a name may resolve to."""

import asyncio
import itertools
import ssl
from pathlib import Path

import pytest

from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.service import TARGETS, UserPushes
from isthmus.a2a.push.targets import PushRefused
from isthmus.client import LimitReached, PushTarget, TaskNotFound
from support.agents import AskingAgent, EchoAgent
from support.certificates import make_certificate
from support.engines import once
from support.pushing import ALLOWED, FINE, pushing, states, told
from support.turns import all_of
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio


async def test_a_deleted_target_is_told_nothing_more(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, AskingAgent()) as served:
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(server.base_url, id="a"), "0.3", None)
            await served.pushes.set(task.task_id, PushTarget(server.base_url + "/b", id="b"), "0.3", None)
            await eventually_async(lambda: len(server.requests) == 2)
            await served.pushes.delete(task.task_id, "a")
            await served.pushes.delete(task.task_id, "never-there")
            assert [target.id for target in await served.pushes.list(task.task_id)] == ["b"]
            await all_of(await served.engine.answer(task.task_id, once("one"), answered_by="me"))
            await eventually_async(lambda: states(server)[-1] == "completed")
        assert {request.path for request in server.requests[2:]} == {"/b"}


async def test_a_replaced_target_keeps_its_place(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, AskingAgent()) as served:
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None)
            await told(server, "input-required")
            await served.pushes.set(task.task_id, PushTarget(server.base_url + "/new"), "0.3", None)
            await all_of(await served.engine.answer(task.task_id, once("one"), answered_by="me"))
            await eventually_async(lambda: states(server)[-1] == "completed")
        assert states(server).count("input-required") == 1
        assert server.requests[-1].path == "/new"


async def test_a_target_that_was_deleted_and_is_set_again_is_told_how_the_task_stands(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            for count in (1, 2):
                await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None)
                await eventually_async(lambda count=count: len(server.requests) == count)

                async def settled() -> bool:
                    (row,) = await served.pushes.rows(task.task_id)
                    return row.seq == task.seq

                await eventually_async(settled)
                await served.pushes.delete(task.task_id, task.task_id)


async def test_only_the_owner_of_a_task_has_to_do_with_its_targets(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            target = await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None)
            stranger = UserPushes(served.engine.for_user("eve"), served.journal.pushes, PushSender(ALLOWED))
            for attempt in (
                stranger.set(task.task_id, PushTarget(server.base_url, id="x"), "0.3", None),
                stranger.get(task.task_id),
                stranger.list(task.task_id),
                stranger.delete(task.task_id, target.id),
            ):
                with pytest.raises(TaskNotFound):
                    await attempt
            assert (await served.pushes.get(task.task_id)).id == target.id
            with pytest.raises(TaskNotFound, match="no push notification config with the id other"):
                await served.pushes.get(task.task_id, "other")


async def test_a_task_has_so_many_targets_and_no_more(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            for number in range(TARGETS):
                await served.pushes.set(task.task_id, PushTarget(server.base_url, id=str(number)), "0.3", None)
            with pytest.raises(LimitReached, match="which is the maximum"):
                await served.pushes.set(task.task_id, PushTarget(server.base_url, id="more"), "0.3", None)
            await served.pushes.set(task.task_id, PushTarget(server.base_url, id="3"), "0.3", None)


async def test_a_name_that_changes_its_mind_is_not_followed_to_this_machine(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = itertools.count()

    async def rebinding(host: str, port: int) -> list[str]:
        return ["93.184.216.34"] if next(asked) == 0 else ["127.0.0.1"]

    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent(), PushSender(resolve=rebinding)) as served:
            task = await served.prompted()
            target = PushTarget(f"http://rebind.example:{server.port}/")
            await served.pushes.set(task.task_id, target, "0.3", None)
            await eventually_async(lambda: "leads to a loopback address" in caplog.text)
            with pytest.raises(PushRefused, match="loopback"):
                await served.pushes.set(task.task_id, target, "0.3", None)
        assert not server.requests


async def test_the_connection_goes_to_the_checked_address_with_the_name_in_host(tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.1"]

    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent(), PushSender(ALLOWED, resolve=resolve)) as served:
            task = await served.prompted()
            target = PushTarget(f"http://hooks.example:{server.port}/x")
            await served.pushes.set(task.task_id, target, "0.3", None)
            await told(server, "completed")
    assert server.requests[0].headers["host"] == f"hooks.example:{server.port}"
    assert set(asked) == {("hooks.example", server.port)}


async def test_the_certificate_is_that_of_the_name_and_not_of_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = make_certificate(tmp_path, "hooks.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(files.certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    heads: list[str] = []

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    listening = await asyncio.start_server(receive, "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    async with listening, pushing(tmp_path, EchoAgent(), PushSender(ALLOWED, resolve=resolve)) as served:
        for name in ("hooks.example", "other.example"):
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(f"https://{name}:{port}/x"), "0.3", None)
        await eventually_async(lambda: "certificate" in caplog.text.lower() and len(heads) == 1)
    assert f"host: hooks.example:{port}" in heads[0].lower()
    assert "other.example" in caplog.text


async def test_a_task_that_is_deleted_is_told_of_no_more(tmp_path: Path) -> None:
    with WireServer(lambda _: Answer.json({}, 500)) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None)
            await eventually_async(lambda: len(server.requests) >= 1)
            assert await served.journal.removal.mark([task.task_id])
            assert await served.journal.removal.remove(task.task_id, 1000)

            async def gone() -> bool:
                return not await served.journal.pushes.has_active()

            await eventually_async(gone)
