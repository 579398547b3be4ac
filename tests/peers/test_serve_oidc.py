"""``isthmus serve --oidc-issuer`` as a program: our own client with JWTs of a real issuer, and what the log has."""

import json
import time
from pathlib import Path

import pytest

from isthmus.client import PromptMessage
from isthmus.errors import IsthmusError
from isthmus.events import StateChange, TaskState
from support.loaded_program import LoadedProgram
from support.oidc_issuer import AUDIENCE, DOCUMENT, oidc_issuer
from support.plain_http import plain_client
from support.remote_agents import remote_agent
from support.serve_program import serve_program

pytestmark = pytest.mark.anyio


async def test_a_user_of_an_issuer_works_with_the_server_until_the_token_expires(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    issuer = oidc_issuer()
    with issuer.server:
        options = ("--oidc-issuer", issuer.url, "--oidc-audience", AUDIENCE, "--oidc-user-claim", "preferred_username")
        options += ("--audit-log", str(tmp_path / "audit.jsonl"), "--user-max-tokens-a-day", "1")
        async with serve_program(tmp_path, workspace, *options, loaded=loaded_isthmus) as served:
            async with plain_client() as http:
                card = (await http.get(served.url + ".well-known/agent-card.json")).json()
            scheme = card["securitySchemes"]["oidc"]
            assert scheme["type"] == "openIdConnect"
            assert scheme["openIdConnectUrl"] == issuer.url + DOCUMENT
            assert scheme["openIdConnectSecurityScheme"] == {"openIdConnectUrl": issuer.url + DOCUMENT}
            assert card["security"] == [{"bearer": []}, {"oidc": []}]
            token = issuer.token(preferred_username="alice")
            async with remote_agent(served.url, token) as agent:
                turn = await agent.prompt(PromptMessage("hello", settings={"workspace_path": str(workspace)}))
                states = [item.event.state async for item in turn.deliveries if isinstance(item.event, StateChange)]
                assert states[-1] is TaskState.COMPLETED
                with pytest.raises(IsthmusError, match="model tokens today, and 1 are the maximum"):
                    await agent.prompt(PromptMessage("hello again", context_id=turn.context_id))
            expired = issuer.token(preferred_username="alice", exp=int(time.time()) - 100)
            forged = issuer.forged({"alg": "none"}, preferred_username="alice")
            for refused, reason in ((expired, "expired"), (forged, "algorithms")):
                with pytest.raises(Exception, match=reason):
                    async with remote_agent(served.url, refused) as agent:
                        await agent.tasks()
    audit = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text(encoding="ascii").splitlines()]
    sent = next(line for line in audit if line["method"] == "message/stream")
    assert (sent["user"], sent["auth"]) == (f"{issuer.url}#preferred_username=alice", "jwt")
    assert (sent["task"], sent["outcome"], sent["remote"]) == (turn.task_id, "ok", "127.0.0.1")
    refusals = [line for line in audit if line["outcome"] == "refused"]
    assert [line["error"] for line in refusals if line["user"]] == [-32000]
    assert "the token has expired" in [line.get("reason") for line in refusals]
    assert not any(part in str(audit) for secret in (token, expired, forged) for part in secret.split(".") if part)
    assert "hello" not in str(audit)
    log = (tmp_path / "serve.log").read_text(encoding="utf-8")
    assert f"the keys of the issuer {issuer.url} were read: 2" in log
    assert f"{issuer.url}#preferred_username=alice message/stream" in log
    for secret in (token, expired, forged):
        assert not any(part in log for part in secret.split(".") if part)
