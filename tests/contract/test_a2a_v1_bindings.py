"""Clauses of A2A 1.0 about bindings, cards and versions that the official kit tests."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a import RemoteAgent
from isthmus.a2a.server.users.auth import RequestHead
from isthmus.client import PromptMessage
from support.a2a_hosting import Hosted, hosted
from support.a2a_serving import TOKEN, prompt, rpc
from support.a2a_v1 import PLAIN, Client, said, task_of
from support.obedient_agent import Obedient
from support.turns import events_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def agent() -> Obedient:
    return Obedient()


@pytest.fixture
async def served(agent: Obedient, workspace: Path) -> AsyncGenerator[Hosted]:
    async with hosted(agent, workspace, pushes_to=("127.0.0.1",)) as client:
        yield client


@pytest.mark.requirement("TCK-JSONRPC-FMT-001", "TCK-JSONRPC-FMT-002", "TCK-JSONRPC-SVC-001", "TCK-JSONRPC-SVC-002")
async def test_json_rpc_is_held_to_and_answered_as_json(served: Hosted) -> None:
    answer = await served.post("SendMessage", said("hello"), PLAIN)
    assert answer.headers["content-type"] == "application/json"
    assert (answer.json()["jsonrpc"], answer.json()["id"], sorted(answer.json())) == (
        "2.0",
        7,
        ["id", "jsonrpc", "result"],
    )
    whole = rpc("SendMessage", said("hello"))
    changes: list[dict[str, Any]] = [{"jsonrpc": "1.0"}, {"id": []}, {"method": 5}]
    for wrong in ([whole], *({**whole, **change} for change in changes)):
        refused = (await served.http.post(served.url, json=wrong, headers=PLAIN)).json()
        assert refused["error"]["code"] == -32600
    for unknown in ("sendMessage", "message/send", "Send"):
        assert (await served.post(unknown, said("hello"), PLAIN)).json()["error"]["code"] == -32601
    refused = (await served.post("GetTask", {"id": "x"}, {"A2A-Version": "7.1"})).json()
    assert refused["error"]["code"] == -32009


@pytest.mark.requirement("TCK-JSONRPC-ERR-001", "TCK-JSONRPC-ERR-002", "TCK-JSONRPC-ERR-003", "TCK-JSONRPC-SSE-002")
async def test_errors_of_json_rpc_have_their_codes_and_an_error_info(served: Hosted) -> None:
    done = await task_of(Client(served, "JSONRPC"), "hello")
    for method, params, code, reason in (
        ("GetTask", {"id": "unknown"}, -32001, "TASK_NOT_FOUND"),
        ("CancelTask", {"id": done["id"]}, -32002, "TASK_NOT_CANCELABLE"),
        ("SubscribeToTask", {"id": done["id"]}, -32004, "UNSUPPORTED_OPERATION"),
    ):
        error = (await served.post(method, params, PLAIN)).json()["error"]
        assert (error["code"], sorted(error)) == (code, ["code", "data", "message"])
        info = error["data"][0]
        assert (info["@type"], info["reason"]) == ("type.googleapis.com/google.rpc.ErrorInfo", reason)
        assert info["domain"] == "a2a-protocol.org"


@pytest.mark.slow
@pytest.mark.requirement(
    "TCK-HTTP_JSON-URL-001", "TCK-HTTP_JSON-URL-002", "TCK-HTTP_JSON-SVC-001", "TCK-HTTP_JSON-QP-001"
)
async def test_each_method_has_its_path_and_its_verb(served: Hosted) -> None:
    sent = await served.http.post(f"{served.url}message:send", json=said("ask"), headers=PLAIN)
    assert (sent.status_code, sent.headers["content-type"]) == (200, "application/json")
    task = sent.json()["task"]["id"]
    pushes = f"tasks/{task}/pushNotificationConfigs"
    for verb, path, body in (
        ("GET", f"tasks/{task}?historyLength=1", None),
        ("GET", "tasks?pageSize=1&includeArtifacts=true", None),
        ("POST", pushes, {"id": "a", "url": "http://127.0.0.1:9/"}),
        ("GET", pushes, None),
        ("GET", f"{pushes}/a", None),
        ("DELETE", f"{pushes}/a", None),
        ("POST", f"tasks/{task}:cancel", {}),
        ("GET", "extendedAgentCard", None),
    ):
        found = await served.http.request(verb, served.url + path, json=body, headers=PLAIN)
        assert (found.status_code, found.headers["content-type"]) == (200, "application/json"), path
        other = {"GET": "PUT", "POST": "PUT", "DELETE": "PUT"}[verb]
        assert (await served.http.request(other, served.url + path, headers=PLAIN)).status_code == 405


@pytest.mark.requirement(
    "TCK-HTTP_JSON-ERR-001", "TCK-HTTP_JSON-ERR-002", "TCK-HTTP_JSON-STATUS-001", "TCK-HTTP_JSON-SVC-002"
)
async def test_errors_over_http_have_their_status_and_an_error_info(served: Hosted) -> None:
    done = await task_of(Client(served, "HTTP+JSON"), "hello")
    for verb, path, headers, status, name, reason in (
        ("GET", "tasks/unknown", PLAIN, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
        ("POST", f"tasks/{done['id']}:cancel", PLAIN, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
        ("GET", f"tasks/{done['id']}:subscribe", PLAIN, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
        ("GET", "tasks/unknown", {"A2A-Version": "7.1"}, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
    ):
        found = await served.http.request(verb, served.url + path, headers=headers)
        error = found.json()["error"]
        assert (found.status_code, error["code"], error["status"]) == (status, status, name)
        assert (error["details"][0]["reason"], error["details"][0]["domain"]) == (reason, "a2a-protocol.org")
        assert error["message"]


@pytest.mark.requirement("TCK-BIND-EQUIV-001", "TCK-BIND-EQUIV-002", "TCK-BIND-EQUIV-003")
async def test_both_bindings_say_the_same_of_a_task(served: Hosted) -> None:
    by_rpc, by_rest = Client(served, "JSONRPC"), Client(served, "HTTP+JSON")
    task = await task_of(by_rpc, "make")
    for method, params in (("GetTask", {"id": task["id"]}), ("ListTasks", {}), ("GetExtendedAgentCard", {})):
        assert await by_rpc.call(method, params, PLAIN) == await by_rest.call(method, params, PLAIN)
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        refused = [await each.fails(method, {"id": "unknown"}, PLAIN) for each in (by_rpc, by_rest)]
        assert refused[0].details == refused[1].details


@pytest.mark.requirement("TCK-BIND-EQUIV-004", "TCK-AUTH-SERVER-002", "TCK-CARD-EXT-001")
async def test_each_binding_wants_the_credentials_that_the_card_declares(served: Hosted) -> None:
    nobody = {**PLAIN, "Authorization": "Bearer wrong"}
    card = (await served.http.get(f"{served.url}.well-known/agent-card.json", headers=nobody)).json()
    assert card["securityRequirements"] == [{"schemes": {"bearer": {"list": []}}}]
    assert (await served.post("GetExtendedAgentCard", {}, nobody)).status_code == 401
    for path in ("extendedAgentCard", "tasks", "v1/card", "v1/tasks"):
        assert (await served.http.get(served.url + path, headers=nobody)).status_code == 401


@pytest.mark.requirement("TCK-CORE-CAP-003")
async def test_an_undeclared_extended_card_is_an_unsupported_operation(agent: Obedient, workspace: Path) -> None:
    async with hosted(agent, workspace, security_schemes={}) as served:
        card = (await served.http.get(f"{served.url}.well-known/agent-card.json", headers=PLAIN)).json()
        assert card["capabilities"]["extendedAgentCard"] is False
        for binding in ("JSONRPC", "HTTP+JSON"):
            refused = await Client(served, binding).fails("GetExtendedAgentCard", {}, PLAIN)
            assert refused.reason == "UNSUPPORTED_OPERATION"
        old = (await served.post("agent/getAuthenticatedExtendedCard", {}, {})).json()
        assert old["error"]["code"] == -32007


@pytest.mark.requirement("TCK-CARD-DISC-001", "TCK-CARD-PROTO-001", "TCK-CARD-PROTO-002", "TCK-BIND-FIELD-001")
async def test_the_card_names_every_way_to_reach_the_agent_and_each_works(served: Hosted) -> None:
    card = (await served.http.get(f"{served.url}.well-known/agent-card.json", headers=PLAIN)).json()
    offered = {(each["protocolBinding"], each["protocolVersion"]): each["url"] for each in card["supportedInterfaces"]}
    requests = {
        ("JSONRPC", "1.0"): ("", rpc("SendMessage", said("hello"))),
        ("HTTP+JSON", "1.0"): ("/message:send", said("hello")),
        ("JSONRPC", "0.3"): ("", rpc("message/send", prompt("hello"))),
        ("HTTP+JSON", "0.3"): ("/v1/message:send", {"message": prompt("hello")["message"]}),
    }
    assert offered.keys() == requests.keys()
    for way, (path, body) in requests.items():
        answer = await served.http.post(offered[way] + path, json=body, headers={"A2A-Version": way[1]})
        assert "completed" in answer.text.lower(), answer.text


@pytest.mark.requirement("TCK-CARD-STRUCT-001")
async def test_the_card_has_what_it_must(served: Hosted) -> None:
    card = (await served.http.get(f"{served.url}.well-known/agent-card.json", headers=PLAIN)).json()
    needed = {"name", "description", "version", "supportedInterfaces", "capabilities", "skills"}
    assert card.keys() >= needed | {"defaultInputModes", "defaultOutputModes"}


@pytest.mark.requirement("TCK-VER-SERVER-003")
async def test_an_empty_version_is_that_of_0_3(served: Hosted) -> None:
    answer = (await served.post("message/send", prompt("hello"), {"A2A-Version": ""})).json()
    assert answer["result"]["kind"] == "task"


@pytest.mark.requirement("TCK-VER-CLIENT-001")
async def test_our_client_states_the_version_with_each_request(agent: Obedient, workspace: Path) -> None:
    stated: list[str | None] = []

    async def anybody(head: RequestHead) -> str | None:
        stated.append(head.headers.get("a2a-version"))
        return ""

    async with hosted(agent, workspace, authenticate=anybody) as served:
        for binding in ("JSONRPC", "HTTP+JSON"):
            remote = await RemoteAgent.connect(served.url, TOKEN, protocol="1.0", binding=binding)
            try:
                turn = await remote.prompt(PromptMessage("hello"))
                assert await events_of(turn)
                await remote.get(turn.task_id)
                await remote.tasks()
            finally:
                await remote.aclose()
    assert len(stated) >= 6
    assert set(stated) == {"1.0"}
