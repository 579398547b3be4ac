"""The metrics of ``isthmus serve``, which Prometheus reads."""

from pathlib import Path

import pytest

from support.a2a_serving import EXTENSION, prompt, rpc
from support.loaded_program import LoadedProgram
from support.metrics_page import reader_of
from support.plain_http import plain_client
from support.serve_program import ServeProgram, serve_program

pytestmark = pytest.mark.anyio


async def page_of(served: ServeProgram, token: str | None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with plain_client() as http:
        response = await http.get(served.url + "metrics", headers=headers)
        return response.status_code, response.text


async def greet(served: ServeProgram, workspace: Path) -> None:
    headers = {**EXTENSION, "Authorization": f"Bearer {served.token}"}
    async with plain_client() as http:
        answer = await http.post(served.url, json=rpc("message/send", prompt("greet", workspace)), headers=headers)
        assert answer.json()["result"]["status"]["state"] == "completed"


async def test_a_server_counts_its_work_for_prometheus(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    reader_file = tmp_path / "reader"
    options = ("--approval-mode", "yolo", "--slots", "3", "--metrics-token-file", str(reader_file))
    async with serve_program(tmp_path, workspace, *options, loaded=loaded_isthmus) as served:
        await greet(served, workspace)
        assert (await page_of(served, None))[0] == 401
        assert (await page_of(served, served.token))[0] == 200
        assert reader_file.stat().st_mode & 0o777 == 0o600
        status, text = await page_of(served, reader_file.read_text(encoding="utf-8").strip())
        assert status == 200
    value = reader_of(text)
    assert value("tasks", state="completed") == 1
    assert value("slots") == 3
    assert value("segment_seconds_count", state="completed") == 1
    model = {"provider": "scripted", "model": "practice"}
    assert value("model_seconds_count", **model, result="ok") == 2
    assert value("model_tokens_total", **model, direction="input") > 0
    assert value("model_tokens_total", **model, direction="output") > 0
    assert value("tool_calls_total", kind="edit", status="succeeded") == 1
    assert value("http_requests_total", method="message/send", code="200") == 1
    assert value("http_requests_total", method="GET", code="401") == 1
    assert value("journal_bytes") > 0
    assert "greeting" not in text


async def test_open_metrics_are_read_without_a_token(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with serve_program(tmp_path, workspace, "--metrics-open", loaded=loaded_isthmus) as served:
        status, text = await page_of(served, None)
        assert status == 200
        assert reader_of(text)("tasks_running") == 0
