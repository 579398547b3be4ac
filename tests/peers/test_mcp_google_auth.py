"""Servers that get a Google identity: google-auth itself, over HTTP to endpoints on this machine."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.google_endpoints import GoogleEndpoints, google_endpoints
from support.mcp_hosting import hosting, status_when, write_servers
from support.mcp_tools import process_lists

pytestmark = pytest.mark.anyio

SCOPE = "https://www.googleapis.com/auth/userinfo.email"


@pytest.fixture
async def google(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[GoogleEndpoints]:
    async with google_endpoints() as found:
        monkeypatch.setenv("CLOUDSDK_CONFIG", str(home / "gcloud"))
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
        yield found


def use_login_of_gcloud(home: Path, google: GoogleEndpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let google-auth use such a file: it always asks Google's own token endpoint, whatever the file names."""
    from google.oauth2 import credentials

    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(google.write_user(home / "adc.json")))
    monkeypatch.setattr(credentials, "_GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{google.origin}/token")


def trusted(folder: Path) -> bool:
    """Return True: the user trusts every folder."""
    return True


def settings(google: GoogleEndpoints, **more: Any) -> dict[str, Any]:
    return {
        "httpUrl": f"{google.origin}/mcp",
        "authProviderType": "google_credentials",
        "oauth": {"scopes": [SCOPE]},
        **more,
    }


def lent(google: GoogleEndpoints) -> dict[str, Any]:
    return {
        "httpUrl": f"{google.origin}/mcp",
        "authProviderType": "service_account_impersonation",
        "targetAudience": "client.apps.example",
        "targetServiceAccount": "robot@the-project.iam.gserviceaccount.com",
    }


@pytest.mark.requirement("MCP-067", "MCP-069")
async def test_the_credentials_of_gcloud_are_sent_with_their_project(
    home: Path, workspace: Path, google: GoogleEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_login_of_gcloud(home, google, monkeypatch)
    async with hosting(home, {"s": settings(google)}) as host:
        scope = ToolScope(workspace)
        assert list((await host.tools(scope)).tools) == ["whoami"]
        for sent in google.headers:
            assert (sent["authorization"], sent["x-goog-user-project"]) == ("Bearer user-0", "the-quota-project")
        (form,) = google.asked["token"]
        assert (form["grant_type"], form["refresh_token"]) == ("refresh_token", "the-refresh-token")
        google.tokens.clear()  # invalid before its time: another one is requested, once
        await host.refresh(scope, "s")
        await status_when(host, scope, "s", ServerState.CONNECTED)
        assert "user-0" not in str(await host.servers(scope))
        with pytest.raises(ToolFailure, match="gcloud auth application-default login"):
            await anext(host.login(scope, "s"))


@pytest.mark.requirement("MCP-069", "MCP-070")
async def test_the_key_of_a_service_account_gets_a_token_for_the_scopes(
    home: Path, workspace: Path, google: GoogleEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(google.write_account(home / "adc.json")))
    async with hosting(home, {"s": settings(google), "none": settings(google, oauth={})}) as host:
        assert list((await host.tools(ToolScope(workspace))).tools) == ["whoami"]
        assert google.asked["token"][0]["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        problem = {status.name: status.problem for status in await host.servers(ToolScope(workspace))}["none"]
        assert "oauth.scopes: expected the scopes that google_credentials needs" in (problem or "")


@pytest.mark.requirement("MCP-069")
async def test_on_a_machine_of_google_s_its_metadata_server_is_asked(
    home: Path, workspace: Path, google: GoogleEndpoints
) -> None:
    write_servers(home, {"s": settings(google)})
    found = await process_lists(
        home,
        workspace,
        CLOUDSDK_CONFIG=str(home / "gcloud"),
        GCE_METADATA_HOST=google.origin.removeprefix("http://"),
        GCE_METADATA_IP=google.origin.removeprefix("http://"),
        NO_GCE_CHECK="false",
    )
    assert found["tools"] == ["whoami"], found
    assert any("/token?" in asked and "userinfo.email" in asked for asked in google.asked["metadata"])
    assert google.headers[0]["authorization"].startswith("Bearer machine-")


@pytest.mark.requirement("MCP-067")
async def test_a_service_account_s_identity_is_lent_by_iam(
    home: Path, workspace: Path, google: GoogleEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_login_of_gcloud(home, google, monkeypatch)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS", f"{google.origin}/")
    async with hosting(home, {"s": lent(google)}) as host:
        assert list((await host.tools(ToolScope(workspace))).tools) == ["whoami"]
    ((account, body, authorization),) = google.asked["iam"]
    assert account == "robot@the-project.iam.gserviceaccount.com:generateIdToken"
    assert body == {"audience": "client.apps.example", "includeEmail": True}
    assert authorization == "Bearer user-0"
    assert {sent["authorization"].partition(".")[0] for sent in google.headers} == {"Bearer e30"}


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("nothing", "there are no Google credentials here; run gcloud auth application-default login"),
        ("refused", "Google gives no token for its credentials: invalid_grant: Bad Request"),
        ("elsewhere", "is not https"),
    ],
)
async def test_why_there_is_no_token_is_said_without_a_secret(
    home: Path, workspace: Path, google: GoogleEndpoints, way: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way != "nothing":
        path = google.write_account(home / "adc.json")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        google.refuses = True
        if way == "elsewhere":
            path.write_text(path.read_text().replace(google.origin, "http://10.0.0.1:9"))
    async with hosting(home, {"s": settings(google)}) as host:
        status = await status_when(host, ToolScope(workspace), "s", ServerState.DISCONNECTED)
        assert words in (status.problem or "")
        assert "assertion" not in (status.problem or "")


async def test_a_token_of_google_goes_over_https_only(
    home: Path, workspace: Path, google: GoogleEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_login_of_gcloud(home, google, monkeypatch)
    servers = {"s": {**settings(google), "httpUrl": "http://127.0.0.1.nip.example:9/mcp", "timeout": 5000}}
    async with hosting(home, servers) as host:
        status = await status_when(host, ToolScope(workspace), "s", ServerState.DISCONNECTED)
        assert google.asked == {}
        assert "https:// only" in (status.problem or "")


@pytest.mark.requirement("MCP-068")
async def test_a_project_s_file_cannot_have_a_google_identity_sent_to_its_own_host(
    home: Path, workspace: Path, google: GoogleEndpoints
) -> None:
    write_servers(workspace, {"theirs": settings(google), "plain": {"httpUrl": f"{google.origin}/mcp"}})
    async with hosting(home, {}, trusts=trusted) as host:
        found = {status.name: status for status in await host.servers(ToolScope(workspace))}
        assert "is allowed in your own settings file only" in (found["theirs"].problem or "")
        await status_when(host, ToolScope(workspace), "plain", ServerState.NEEDS_LOGIN)  # by OAuth, the default
        assert google.asked == {}
