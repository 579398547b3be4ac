"""A hosted agent for several users under another ASGI server: limits, metrics, audit log and users of an issuer."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a import Caps, Hosting, ServerOptions, ServingError, SignIn, TelemetryOptions, asgi_application
from isthmus.a2a.server.users.auth import RequestHead
from isthmus.a2a.server.users.users_file import FILE, UsersFile
from isthmus.a2a.serving.options import ServingOptions
from isthmus.agent.session.session import Session
from isthmus.engine.port.placement import Placement
from isthmus.events import AgentEvent, TextContent
from isthmus.internal_events import ModelUsed
from isthmus.programs.serve.serve_settings import ServeSettings
from support.a2a_hosting import Everything, Hosted, hosted
from support.a2a_serving import EXTENSION, TOKEN, prompt
from support.metrics_page import reader_of
from support.oidc_issuer import AUDIENCE, oidc_issuer

pytestmark = pytest.mark.anyio


class Counting:
    """An agent that uses five model tokens for each message."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield ModelUsed("a-model", input_tokens=3, output_tokens=2)
        yield TextContent("", "done")


class Endless:
    """An agent that works until it is stopped."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield TextContent("", "I begin. ")
        await asyncio.Event().wait()


def token_of(folder: Path, name: str) -> str:
    """Make a token of a user of the agent that :func:`hosted` serves in a folder."""

    def add(table: Any) -> Any:
        new, _, token = table.added(name, 0)
        return new, token

    return UsersFile(folder / "state" / FILE).change(add)


async def send(client: Hosted, token: str, folder: Path, method: str = "message/send", **more: Any) -> Any:
    """Post a message with a token; return the response."""
    return await client.post(method, prompt("go", folder, **more), {**EXTENSION, "Authorization": f"Bearer {token}"})


async def test_limits_of_users_are_refused_with_the_codes_of_serve(workspace: Path) -> None:
    caps = Caps(max_tasks=1, max_request=2000, max_requests_a_minute=4)
    async with hosted(Everything(), workspace, workspaces=(workspace,), user_caps=caps) as client:
        alice = token_of(workspace, "alice")
        assert (await send(client, alice, workspace)).json()["result"]["status"]["state"] == "input-required"
        refused = (await send(client, alice, workspace)).json()["error"]
        assert refused["code"] == -32000
        assert "the limit is 1" in refused["message"]
        assert (await send(client, alice, workspace, parts=[{"kind": "text", "text": "y" * 3000}])).status_code == 413
        assert (await send(client, alice, workspace)).status_code == 200
        limited = await send(client, alice, workspace)
        assert limited.status_code == 429
        assert int(limited.headers["retry-after"]) > 0
        assert (await send(client, TOKEN, workspace)).json()["result"]["status"]["state"] == "input-required"


async def test_model_tokens_that_the_agent_reports_are_limited(workspace: Path) -> None:
    more = {"workspaces": (workspace,), "user_caps": Caps(max_tokens_a_day=5), "reports_tokens": True}
    async with hosted(Counting(), workspace, **more) as client:
        alice, bob = token_of(workspace, "alice"), token_of(workspace, "bob")
        assert (await send(client, alice, workspace)).json()["result"]["status"]["state"] == "completed"
        refused = (await send(client, alice, workspace)).json()["error"]
        assert refused["code"] == -32000
        assert "alice has used 5 model tokens today, and 5 are the maximum of a day" in refused["message"]
        assert (await send(client, bob, workspace)).json()["result"]["status"]["state"] == "completed"


async def test_metrics_are_read_by_the_owner_and_with_their_own_token(workspace: Path) -> None:
    reader = workspace / "reader"
    more = {"slots": 2, "telemetry": TelemetryOptions(metrics_token_file=reader)}
    async with hosted(Counting(), workspace, **more) as client:
        await send(client, TOKEN, workspace)
        assert (await client.http.get(client.url + "metrics", headers={"Authorization": ""})).status_code == 401
        own = await client.http.get(client.url + "metrics")
        headers = {"Authorization": f"Bearer {reader.read_text('utf-8').strip()}"}
        read = await client.http.get(client.url + "metrics", headers=headers)
        assert (own.status_code, read.status_code) == (200, 200)
    value = reader_of(read.text)
    assert value("tasks", state="completed") == 1
    assert value("slots") == 2
    assert value("segment_seconds_count", state="completed") == 1
    assert value("http_requests_total", method="message/send", code="200") == 1


async def test_each_request_is_in_the_audit_log(workspace: Path, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with hosted(Counting(), workspace, workspaces=(workspace,), audit_log=path) as client:
        alice = token_of(workspace, "alice")
        task = (await send(client, alice, workspace)).json()["result"]
        await send(client, "wrong", workspace)
    sent, refused = map(json.loads, path.read_text("ascii").splitlines())
    assert (sent["user"], sent["method"], sent["task"], sent["outcome"]) == ("alice", "message/send", task["id"], "ok")
    assert (refused["status"], refused["outcome"]) == (401, "refused")


async def test_users_of_an_issuer_work_in_the_agents_own_folder(workspace: Path, tmp_path: Path) -> None:
    issuer = oidc_issuer()
    with issuer.server:
        sign_in = SignIn(issuer.url, AUDIENCE, tier_claim="plan")
        async with hosted(Counting(), workspace, sign_in=sign_in) as client:
            card = (await client.http.get(client.url + ".well-known/agent-card.json")).json()
            token = issuer.token(sub="alice", plan="gold")
            answered = (await send(client, token, workspace)).json()["result"]
            elsewhere = (await send(client, token, tmp_path.parent)).json()["error"]
            expired = await send(client, issuer.token(exp=1), workspace)
    assert card["security"] == [{"bearer": []}, {"oidc": []}]
    assert answered["status"]["state"] == "completed"
    assert "not allowed on this server" in elsewhere["message"]
    assert expired.status_code == 401


async def test_a_stream_ends_with_the_token_of_its_user_under_any_asgi_server(workspace: Path) -> None:
    async with hosted(Endless(), workspace, workspaces=(workspace,)) as client:
        alice = token_of(workspace, "alice")
        headers = {**EXTENSION, "Authorization": f"Bearer {alice}"}
        async with asyncio.timeout(60), client.opened("message/stream", prompt("go", workspace), headers) as items:
            task_id = (await anext(items)).result["id"]
            UsersFile(workspace / "state" / FILE).change(lambda table: table.revoked("alice"))
            last = [item.answer async for item in items][-1]
            assert last["error"]["message"].startswith("this stream ends: its token is no longer valid")
        assert (await client.post("tasks/get", {"id": task_id}, headers)).status_code == 401


async def named(head: RequestHead) -> str | None:
    return head.headers.get("x-name")


async def test_users_whom_the_application_names_are_limited_counted_and_audited(workspace: Path) -> None:
    reader, audit = workspace / "reader", workspace / "audit.jsonl"
    telemetry = TelemetryOptions(metrics_token_file=reader, metrics_users=2)
    more = {"authenticate": named, "telemetry": telemetry, "audit_log": audit, "user_caps": Caps(max_tasks=1)}
    async with hosted(Everything(), workspace, **more) as client:
        headers = {**EXTENSION, "X-Name": "ann"}
        asked = (await client.post("message/send", prompt("go", workspace), headers)).json()["result"]
        refused = (await client.post("message/send", prompt("go", workspace), headers)).json()["error"]
        unknown = await client.post("message/send", prompt("go", workspace), EXTENSION)
        not_the_owner = await client.http.get(client.url + "metrics", headers={"X-Name": "ann"})
        reading = {"Authorization": f"Bearer {reader.read_text('utf-8').strip()}"}
        page = (await client.http.get(client.url + "metrics", headers=reading)).text
    assert (refused["code"], unknown.status_code, not_the_owner.status_code) == (-32000, 401, 403)
    assert reader_of(page)("tasks", state="input-required", user="ann") == 1
    lines = [json.loads(line) for line in audit.read_text("ascii").splitlines()]
    assert [(line["user"], line["outcome"]) for line in lines[:2]] == [("ann", "ok"), ("ann", "refused")]
    assert lines[0]["task"] == asked["id"]


async def anybody(_: RequestHead) -> str | None:
    return ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sign_in": SignIn("https://login.example.org", "x"), "authenticate": anybody}, "give one of the two"),
        ({"sign_in": SignIn("https://login.example.org", "")}, "its audience is empty"),
        ({"slots": 0}, "slots: 0; expected 1 or more"),
        ({"lease_seconds": 0.5}, "lease_seconds: 0.5; expected 1 or more, up to 3600"),
        ({"drain_seconds": -1}, "drain_seconds: -1; expected 0 or more"),
        ({"user_caps": Caps(max_running=0)}, "user_caps.max_running: 0"),
        ({"telemetry": TelemetryOptions(metrics_users=101)}, "up to 100"),
        ({"labels": ("a b",)}, "label 'a b': expected up to 63 letters"),
        ({"workspace_labels": {Path("gpu"): "gpu"}}, "expected the absolute path"),
        ({"certificate": (Path("a"), Path("b"))}, "an ASGI application has no socket"),
        ({"insecure_http": True}, "insecure_http: an ASGI application has no socket"),
    ],
)
def test_options_that_cannot_work_are_refused_with_the_reason(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ServingError, match=said):
        asgi_application(Counting(), Hosting("Counting", **given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"user_caps": Caps(max_tokens_a_day=5)}, "yield a ModelUsed of isthmus.internal_events"),
        ({"sign_in": SignIn("http://login.example.org", "x")}, "sign_in .*https"),
        ({"pushes_to": ("///",)}, "pushes_to "),
    ],
)
async def test_options_that_cannot_work_here_are_refused_at_the_start(
    workspace: Path, given: dict[str, Any], said: str
) -> None:
    served = asgi_application(Counting(), Hosting("Counting", folder=workspace / "state", token=TOKEN, **given))
    with pytest.raises(ServingError, match=said):
        await served.open()
    await served.aclose()


RENAMED = {
    "allowed_pushes": "pushes_to",
    "allowed_workspaces": "workspaces",
    "optional_extension": "requires_extension",
    "user_max_usd_a_day": "user_caps",
}
"""Names in Hosting of options of ``isthmus serve``."""
OF_THE_CALL = {"host", "port"}
"""Options that are arguments of :func:`isthmus.a2a.serve`."""
NOT_OFFERED = {
    "agent": "the author's agent is served, and no command",
    "allow_client_mcp": "only our own agent is given MCP servers by its clients",
    "has_page": "the workbench shows what only our own agent has: models, tools, skills, files",
    "log_format": "a Python program has a log of its own, by the module logging",
    "log_level": "a Python program has a log of its own, by the module logging",
    "max_approval_mode": "approval modes are our own agent's",
    "opens_page": "belongs to the workbench",
    "repositories": "the files of a session are pushed after each tool call, which only our own agent tells in time",
}
"""Options of ``isthmus serve`` that Hosting does not have, with reasons."""
HOSTING = {each.name for each in fields(Hosting)}
OF_SERVER = {each.name for each in fields(ServerOptions)}


def test_each_option_of_serve_is_one_of_hosting_or_has_a_reason_not_to_be() -> None:
    options = {each.name for each in fields(ServeSettings)} - OF_THE_CALL
    options = (options - {"placement"}) | {each.name for each in fields(Placement)}
    names = {RENAMED.get(name, name) for name in options - NOT_OFFERED.keys()}
    in_hosting = {"folders": "workspace_labels"}
    missing = {name for name in names if in_hosting.get(name, name) not in HOSTING | OF_SERVER}
    assert missing == set()
    assert NOT_OFFERED.keys() <= options, "an option that is gone needs no reason"


@pytest.mark.parametrize("name", sorted(each.name for each in fields(ServingOptions) if each.name != "names"))
def test_each_option_that_is_the_same_for_every_agent_reaches_the_server(name: str) -> None:
    given = {
        "audit_log": Path("audit"),
        "certificate": (Path("certificate"), Path("key")),
        "drain_seconds": 1.5,
        "insecure_http": True,
        "pushes_to": ("10.0.0.0/8",),
        "sign_in": SignIn("https://login.example.org", "x"),
        "telemetry": TelemetryOptions(metrics_users=1),
    }
    serving = replace(Hosting(), **{name: given[name]}).serving()
    assert getattr(serving, name) == given[name]
    assert replace(serving, **{name: getattr(ServingOptions(), name)}) == ServingOptions()


def test_the_place_among_several_processes_reaches_the_engine() -> None:
    folder = Path.cwd().resolve()
    hosting = Hosting(slots=2, labels=("gpu",), workspace_labels={folder: "gpu"}, lease_seconds=5)
    assert hosting.placement() == Placement(2, ("gpu",), ((folder, "gpu"),), 5)
