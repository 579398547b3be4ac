"""The page in the process of a companion, over its real socket."""

from collections.abc import Container
from pathlib import Path

import pytest

from isthmus.ide.control import lineage
from isthmus.ide.control.commands import COMMANDS
from isthmus.ide.editor import Capability, EditorError
from isthmus.ide.options import CompanionOptions
from isthmus.ide.running.host import CompanionHost
from isthmus.programs.companion.page import WebEditor, serving_page
from support.companion import running_host
from support.companion_recorder import Recorder
from support.plain_http import plain_client

pytestmark = pytest.mark.anyio


async def test_the_page_answers_for_the_user_unless_an_agent_is_behind_the_browser(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind: list[str] = []

    def agent_behind_browser(pid: int, ports: Container[int], agents: Container[int]) -> str | None:
        return behind[0] if behind else None

    monkeypatch.setattr(lineage, "agent_behind_browser", agent_behind_browser)
    editor, client = WebEditor((str(workspace),)), Recorder()
    async with running_host(editor, CompanionOptions()) as (host, _, _), serving_page(host, editor):
        assert host.companion is not None
        host.companion.attach(client)
        link = (await COMMANDS["page"](host.companion, {}))["page"]
        base, _, code = str(link).partition("#code=")
        async with plain_client(base_url=f"{base}api/") as http:
            paired = await http.post("pair", json={"code": code, "device": "Firefox"})
            head = {"Authorization": f"Bearer {paired.json()['token']}"}
            review = await host.companion.open_diff(client, str(workspace / "a.py"), "new\n")
            (found,) = (await http.get("reviews", headers=head)).json()["companions"]
            (listed,) = found["reviews"]
            assert (found["editor"], listed["id"].endswith(f".{review.id}")) == ("Isthmus (web)", True)
            path, reject = f"reviews/{listed['id']}", {"decision": "reject"}
            behind.append("gemini (process 7)")
            refused = await http.post(path, headers=head, json=reject)
            assert (refused.status_code, "gemini (process 7)" in refused.json()["error"]) == (403, True)
            assert client.decisions == []
            behind.clear()
            said = await http.post(path, headers=head, json=reject)
            assert said.json()["outcome"]["by"] == "Firefox"
            assert len(client.decisions) == 1
            assert (await http.get("reviews/1.x", headers=head)).status_code == 404


async def test_a_page_whose_companion_is_not_ready_is_empty_and_ends_with_it(workspace: Path) -> None:
    editor = WebEditor((str(workspace),))
    assert "page" in editor.unavailable[Capability.CONFIRM]
    async with serving_page(CompanionHost(editor), editor):
        base, _, code = editor.review_page().partition("#code=")
        async with plain_client(base_url=f"{base}api/") as http:
            paired = await http.post("pair", json={"code": code, "device": "Firefox"})
            head = {"Authorization": f"Bearer {paired.json()['token']}"}
            assert (await http.get("reviews", headers=head)).json() == {"companions": []}
    with pytest.raises(EditorError, match="not served"):
        editor.review_page()
