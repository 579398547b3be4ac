"""The command ``isthmus serve`` for other users and machines: TLS, users, log, push notifications, its end."""

import asyncio
import json
import re
import signal
import ssl
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.a2a_serving import EXTENSION, allow, answer, prompt, rpc
from support.certificates import make_certificate
from support.isthmus_program import isthmus
from support.loaded_program import LoadedProgram
from support.plain_http import plain_client
from support.serve_program import ServeProgram, serve_program
from support.waiting import eventually_async
from support.wire_server import Answer, WireRequest, WireServer

pytestmark = pytest.mark.anyio

EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - to see that it is refused
FINE = Answer(204, {"content-length": "0"})
PLACES = """
name: places
scenarios:
  - prompt: where
    replies:
      - call: {name: run_shell_command, arguments: {command: 'pwd > here; while [ ! -e go ]; do sleep 0.05; done'}}
      - text: Done.
  - prompt: wait
    replies:
      - call: {name: run_shell_command, arguments: {command: 'touch begun; sleep 60'}}
      - text: Done.
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}'
"""


async def call(
    served: ServeProgram, method: str, params: object, token: str | None = None, **more: Any
) -> dict[str, Any]:
    headers = {**EXTENSION, "Authorization": f"Bearer {token or served.token}"}
    async with plain_client(**more) as http:
        response = await http.post(served.url, json=rpc(method, params), headers=headers)
        return response.json() if response.status_code == 200 else {"status": response.status_code, **response.json()}


def log_of(folder: Path) -> str:
    return (folder / "serve.log").read_text(encoding="utf-8")


@pytest.mark.requirement("TCK-AUTH-TLS-001")
async def test_the_server_speaks_tls_and_a_client_that_knows_the_certificate_talks_to_it(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    files = make_certificate(tmp_path)
    options = ("--tls-cert", str(files.certificate), "--tls-key", str(files.key))
    async with serve_program(tmp_path, workspace, *options, loaded=loaded_isthmus) as served:
        assert served.url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=files.certificate)
        async with plain_client(verify=trusted) as http:
            health = await http.get(served.url + "healthz")
            card = (await http.get(served.url + ".well-known/agent-card.json")).json()
        assert health.json() == {"status": "ok"}
        assert card["url"] == served.url
        task = (await call(served, "message/send", prompt("hello", workspace), verify=trusted))["result"]
        assert task["status"]["state"] == "completed"
        connect = ("connect", served.url, "--token-file", str(tmp_path / "token"), "--workspace", str(workspace))
        with pytest.MonkeyPatch.context() as patch:
            refused = await asyncio.to_thread(loaded_isthmus.run, *connect, "-p", "hello", folder=tmp_path, text="")
            assert refused.returncode == 1
            assert "certificate" in refused.stderr.lower()
            assert "--ca-file" in refused.stderr
            assert "Traceback" not in refused.stderr
            patch.setenv("SSL_CERT_FILE", str(files.certificate))
            ended = await asyncio.to_thread(loaded_isthmus.run, *connect, "-p", "hello", folder=tmp_path, text="")
        assert (ended.returncode, ended.stdout) == (0, "You said: hello\n"), ended.stderr
        vouched = ("--ca-file", str(files.certificate), "-p", "hello")
        ended = await asyncio.to_thread(loaded_isthmus.run, *connect, *vouched, folder=tmp_path, text="")
        assert (ended.returncode, ended.stdout) == (0, "You said: hello\n"), ended.stderr
        with pytest.raises(httpx2.TransportError):
            async with plain_client() as http:
                await http.get(served.url.replace("https://", "http://") + "healthz")
        assert await served.end(signal.SIGTERM) == 0


async def test_a_renewed_certificate_is_taken_and_a_broken_one_is_not(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    files = make_certificate(tmp_path)
    options = ("--tls-cert", str(files.certificate), "--tls-key", str(files.key))
    async with serve_program(tmp_path, workspace, *options, loaded=loaded_isthmus) as served:
        files.certificate.write_text("half", encoding="utf-8")
        await eventually_async(lambda: "previous certificate stays in use" in log_of(tmp_path))
        make_certificate(tmp_path)
        renewed = ssl.create_default_context(cafile=files.certificate)

        async def is_served() -> bool:
            async with plain_client(verify=renewed) as http:
                try:
                    return (await http.get(served.url + "healthz")).status_code == 200
                except httpx2.TransportError:
                    return False

        await eventually_async(is_served)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--host", EVERY_ADDRESS), 42, "--tls-cert and --tls-key"),
        (("--tls-cert", "only.pem"), 42, "belong together"),
        (("--tls-cert", "no.pem", "--tls-key", "no.pem"), 1, "no.pem cannot be used"),
        (("--allow-workspace", "/nowhere"), 42, "/nowhere"),
        (("--allow-push-to", "http://x"), 42, "is not a target for push notifications"),
        (("--public-url", "agent.example"), 42, "https://agent.example.org/"),
        (("--log-format", "xml"), 42, "xml"),
        (("token", "add", "a b"), 1, "is not a valid user name"),
        (("token", "add", "a", "--expires", "soon"), 42, "--expires 'soon'"),
        (("token", "revoke", "nobody"), 1, "Users: none"),
        (("token", "ad"), 42, "ad"),
        (("tokens",), 42, "tokens"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_starts(
    tmp_path: Path, arguments: tuple[str, ...], status: int, message: str, loaded_isthmus: LoadedProgram
) -> None:
    ended = loaded_isthmus.run("serve", *arguments, folder=tmp_path, text="")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.returncode == status


async def test_plain_http_to_other_machines_must_be_wanted(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    for option in (("--insecure-http",), ("--public-url", "https://agent.example/")):
        async with (
            serve_program(tmp_path, workspace, "--host", EVERY_ADDRESS, *option, loaded=loaded_isthmus) as served,
            plain_client() as http,
        ):
            url = served.url.replace(EVERY_ADDRESS, "127.0.0.1")
            assert (await http.get(url + "healthz")).json() == {"status": "ok"}


def token_program(loaded: LoadedProgram, folder: Path, *arguments: str) -> tuple[int, str, str]:
    ended = loaded.run("serve", "token", *arguments, "--data-dir", str(folder / "data"), folder=folder, text="")
    return ended.returncode, ended.stdout, ended.stderr


async def test_tokens_come_and_go_while_the_server_runs_and_none_is_in_its_log_or_files(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    options = ("--allow-workspace", str(other), "--log-format", "json", "--log-level", "debug")
    async with serve_program(tmp_path, workspace, *options, loaded=loaded_isthmus) as served:
        status, output, notes = await asyncio.to_thread(
            token_program, loaded_isthmus, tmp_path, "add", "alice", "--expires", "90d"
        )
        token = output.strip()
        assert (status, bool(re.fullmatch(r"isthmus_[0-9a-f]{8}_[\w-]{43}", token))) == (0, True)
        assert token not in notes
        task = (await call(served, "message/send", prompt("hello", other), token))["result"]
        assert task["status"]["state"] == "completed"
        assert (await call(served, "tasks/get", {"id": task["id"]}))["error"]["code"] == -32001
        _, listed, _ = await asyncio.to_thread(token_program, loaded_isthmus, tmp_path, "list")
        assert "alice" in listed
        assert "expires 20" in listed
        status, output, _ = await asyncio.to_thread(token_program, loaded_isthmus, tmp_path, "revoke", "alice")
        assert (status, output) == (0, f"Revoked the token {token.split('_')[1]} of alice.\n")
        refused = await call(served, "tasks/get", {"id": task["id"]}, token)
        assert refused["status"] == 401
        assert await served.end(signal.SIGTERM) == 0
    lines = [json.loads(line) for line in log_of(tmp_path).splitlines()]
    (line,) = [item for item in lines if item.get("method") == "message/send"]
    assert (line["user"], line["task"], line["status"], line["level"]) == ("alice", task["id"], 200, "info")
    assert line["duration"] > 0
    (missed,) = [item for item in lines if item.get("error") == -32001]
    assert missed["user"] == "-"
    assert [item["status"] for item in lines if item.get("status") == 401] == [401]
    users = tmp_path / "data" / "users.json"
    assert stat.S_IMODE(users.stat().st_mode) == 0o600
    for path in (p for p in tmp_path.rglob("*") if p.is_file() and p.name != "token"):
        content = path.read_bytes()
        assert token.encode() not in content, path
        assert served.token.encode() not in content, path


async def test_users_without_an_allowed_folder_are_not_served(tmp_path: Path, loaded_isthmus: LoadedProgram) -> None:
    await asyncio.to_thread(token_program, loaded_isthmus, tmp_path, "add", "alice")
    ended = loaded_isthmus.run("serve", "-m", "demo", "--data-dir", str(tmp_path / "data"), folder=tmp_path, text="")
    assert ended.returncode == 42
    assert "alice" in ended.stderr
    assert "--allow-workspace" in ended.stderr


async def test_push_notifications_survive_kill_9_in_order_and_none_is_lost(tmp_path: Path, workspace: Path) -> None:
    answers = {"now": Answer.json({}, 503)}
    taken: list[WireRequest] = []

    def respond(request: WireRequest) -> Answer:
        if answers["now"] is FINE:
            taken.append(request)
        return answers["now"]

    with WireServer(respond) as hooks:
        options = ("--allow-push-to", "127.0.0.1")
        secret = {"schemes": ["Bearer"], "credentials": "very-secret-credentials"}
        config = {"url": f"{hooks.base_url}/very-secret-path", "token": "very-secret-token", "authentication": secret}
        ids: list[str] = []
        async with serve_program(tmp_path, workspace, *options) as served:
            for number in range(5):
                text = "greet me" if number % 2 else "hello"
                params = {**prompt(text, workspace), "configuration": {"pushNotificationConfig": config}}
                ids.append((await call(served, "message/send", params))["result"]["id"])
            await eventually_async(lambda: len({request.json["id"] for request in hooks.requests}) == 5)
            served.process.send_signal(signal.SIGKILL)
            await served.process.wait()
        answers["now"] = FINE
        async with serve_program(tmp_path, workspace, *options) as served:
            arrived = [["working", "completed"], ["working", "input-required"]]
            for number, task_id in enumerate(ids):

                def told(task_id: str = task_id, expected: list[str] = arrived[number % 2]) -> bool:
                    of_task = [request for request in list(taken) if request.json["id"] == task_id]
                    # The last notification of the killed server may come twice, under the same key.
                    once = {request.headers["idempotency-key"]: request for request in of_task}
                    assert [request.json["status"]["state"] for request in once.values()] == expected
                    return True

                await eventually_async(told)
            waiting = (await call(served, "tasks/get", {"id": ids[1]}))["result"]
            call_id = waiting["status"]["message"]["parts"][0]["data"]["tool_call_id"]
            before = len(hooks.requests)
            await call(served, "message/send", answer(ids[1], allow(call_id)))
            await eventually_async(lambda: len(hooks.requests) > before)
            await eventually_async(lambda: hooks.requests[-1].json["status"]["state"] == "completed")
            assert {request.json["id"] for request in hooks.requests[before:]} == {ids[1]}
    assert all(request.headers["authorization"] == "Bearer very-secret-credentials" for request in hooks.requests)
    assert "was not delivered to http://127.0.0.1" in log_of(tmp_path)
    assert "very-secret" not in log_of(tmp_path)


async def test_two_tasks_work_in_two_folders_at_the_same_time(tmp_path: Path, loaded_isthmus: LoadedProgram) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    options = ("--allow-workspace", str(folders[1]), "--approval-mode", "yolo")
    async with serve_program(tmp_path, folders[0], *options, script=PLACES, loaded=loaded_isthmus) as served:
        started = [asyncio.create_task(call(served, "message/send", prompt("where", folder))) for folder in folders]
        await eventually_async(lambda: all((folder / "here").exists() for folder in folders), 30)
        for folder in folders:
            (folder / "go").touch()
        for task in started:
            assert (await task)["result"]["status"]["state"] == "completed"
        assert Path(f"/proc/{served.process.pid}/cwd").readlink() == tmp_path
    for folder in folders:
        assert (folder / "here").read_text(encoding="utf-8").strip() == str(folder)


def test_nothing_changes_the_working_directory_or_the_environment_of_the_process() -> None:
    source = Path(__file__).parents[2] / "src" / "isthmus"
    found = re.compile(
        r"\bos\.(chdir|fchdir|putenv|unsetenv)\(|\bos\.environ\[[^]]+\]\s*=|\bos\.environ\.(update|pop|setdefault)\("
    )
    # A module of that name runs in a process of its own.
    modules = (path for path in source.rglob("*.py") if not path.name.endswith("_program.py"))
    changing = [path for path in modules if found.search(path.read_text(encoding="utf-8"))]
    assert changing == []


async def read_to_end(served: ServeProgram, method: str, params: Mapping[str, Any], begun: asyncio.Event) -> bytes:
    """Return all bytes of a response."""
    content = b""
    headers = {**EXTENSION, "Authorization": f"Bearer {served.token}"}
    async with plain_client() as http:
        request = http.stream("POST", served.url, json=rpc(method, params), headers=headers)
        async with request as response:
            async for chunk in response.aiter_raw():
                content += chunk
                begun.set()
    return content


async def test_sigterm_ends_every_stream_properly_and_answers_who_waits(tmp_path: Path, workspace: Path) -> None:
    options = ("--approval-mode", "yolo")
    async with serve_program(tmp_path, workspace, *options, script=PLACES) as served:
        begun = asyncio.Event(), asyncio.Event()
        streaming = asyncio.create_task(read_to_end(served, "message/stream", prompt("wait", workspace), begun[0]))
        await asyncio.wait_for(begun[0].wait(), 20)
        await eventually_async((workspace / "begun").exists, 20)
        (task,) = (await call(served, "isthmus/tasks", {}))["result"]["tasks"]
        following = asyncio.create_task(read_to_end(served, "tasks/resubscribe", {"id": task["id"]}, begun[1]))
        await asyncio.wait_for(begun[1].wait(), 20)
        sending = asyncio.create_task(call(served, "message/send", prompt("wait", workspace)))

        async def both_work() -> bool:
            tasks = (await call(served, "isthmus/tasks", {}))["result"]["tasks"]
            return [item["status"]["state"] for item in tasks] == ["working", "working"]

        await eventually_async(both_work, 20)
        assert await served.end(signal.SIGTERM) == 0
        assert (await streaming).endswith(b": the server is stopping\n")
        assert (await following).endswith(b": the server is stopping\n")
        assert (await sending)["result"]["status"]["state"] == "working"


async def test_a_second_signal_does_not_wait_for_clients(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as served:
        port = int(served.url.rstrip("/").rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            f"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.token}\r\nContent-Length: 9\r\n\r\n"
        )
        writer.write(head.encode())
        async with plain_client() as http:
            await http.get(served.url + "healthz")
        served.process.send_signal(signal.SIGTERM)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(served.process.wait(), 0.5)
        assert await served.end(signal.SIGTERM) == 0
        writer.close()


def test_a_token_goes_to_a_new_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    add = ("serve", "token", "add", "alice", "--out", "alice.token", "--data-dir", "data")
    made = isthmus(*add, folder=tmp_path)
    file = tmp_path / "alice.token"
    assert (made.returncode, made.stdout) == (0, "")
    assert file.stat().st_mode & 0o777 == 0o600
    token = file.read_text("utf-8")
    assert token.strip()
    again = isthmus(*add, folder=tmp_path)
    assert (again.returncode, "--out alice.token: File exists" in again.stderr) == (42, True)
    assert file.read_text("utf-8") == token
    assert isthmus("serve", "token", "list", "--data-dir", "data", folder=tmp_path).stdout.count("alice") == 1


def test_no_file_is_left_where_no_token_was_made(tmp_path: Path, loaded_isthmus: LoadedProgram) -> None:
    ended = loaded_isthmus.run("serve", "token", "add", "a b", "--out", "token", "--data-dir", "data", folder=tmp_path)
    assert ended.returncode == 1
    assert not (tmp_path / "token").exists()
