"""The command ``isthmus serve`` and files in messages: the model of each provider gets them, or they are refused."""

import base64
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.protocol.extension import URI
from support.a2a_serving import prompt, rpc
from support.anthropic_wire import AnthropicWire
from support.gemini_wire import GeminiWire
from support.isolation import isolate
from support.loaded_program import LoadedProgram
from support.openai_wire import OpenAIWire
from support.plain_http import plain_client
from support.scripted_wire import Reply, Say, ScriptedWire
from support.serve_program import ServeProgram, serve_program
from support.wire_server import WireRequest

pytestmark = [pytest.mark.anyio, pytest.mark.shares_connections]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0" + bytes(60)).decode()
GEMINI, ANTHROPIC, OPENAI = "gemini:gemini-2.5-flash", "anthropic:claude-sonnet-5-5", "openai:gpt-6.2"
ON_THE_WIRE = {
    GEMINI: {"inlineData": {"mimeType": "image/png", "data": PNG}},
    ANTHROPIC: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    OPENAI: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
}
"""Pattern of an image in a request, by provider."""


@dataclass(frozen=True, slots=True)
class Served:
    """The server with a model of each provider; gemini is its default."""

    program: ServeProgram
    wires: Mapping[str, ScriptedWire]
    folder: Path
    workspace: Path

    async def post(self, version: str, model: str, *parts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Return the response to a message of these parts, in a session with this model."""
        settings = {URI: {"workspace_path": str(self.workspace), "model": model}}
        if version == "0.3":
            method, params = "message/send", prompt("", parts=list(parts), metadata=settings, **more)
        else:
            message = {"role": "ROLE_USER", "messageId": "m", "parts": list(parts), "metadata": settings, **more}
            method, params = "SendMessage", {"message": message}
        headers = {"A2A-Version": version, "X-A2A-Extensions": URI, "A2A-Extensions": URI}
        headers["Authorization"] = f"Bearer {self.program.token}"
        async with plain_client(headers=headers) as http:
            response = await http.post(self.program.url, json=rpc(method, params))
            return {"http": response.status_code, **response.json()}

    def parts_sent(self, model: str) -> Sequence[Any]:
        """Return the parts of the last message of the last request that a provider got."""
        body = self.wires[model].model_requests[-1].json
        last = (body.get("contents") or body["messages"])[-1]
        found = last.get("parts") or last["content"]
        return [{name: value for name, value in part.items() if name != "cache_control"} for part in found]

    def asked(self) -> int:
        """Return the number of requests that the providers got."""
        return sum(len(wire.model_requests) for wire in self.wires.values())

    def kept_files(self) -> set[Path]:
        """Return the files of messages in the data folder."""
        return {path for path in (self.folder / "data").rglob("message-*") if path.is_file()}


def said(_: WireRequest) -> Reply:
    return Reply.of(Say("A red dot."))


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory, loaded_isthmus: LoadedProgram) -> AsyncGenerator[Served]:
    folder = tmp_path_factory.mktemp("images")
    workspace = folder / "workspace"
    workspace.mkdir()
    async with AsyncExitStack() as stack:
        stack.enter_context(isolate(stack.enter_context(pytest.MonkeyPatch.context())))
        gemini, anthropic = stack.enter_context(GeminiWire(said)), stack.enter_context(AnthropicWire(said))
        openai = stack.enter_context(OpenAIWire(said))
        environment = {
            "GEMINI_API_KEY": "test-key",
            "GOOGLE_GEMINI_BASE_URL": gemini.base_url,
            "ANTHROPIC_API_KEY": "test-key",
            "ANTHROPIC_BASE_URL": anthropic.base_url,
            "OPENAI_API_KEY": "test-key",
            "OPENAI_BASE_URL": openai.base_url,
        }
        running = serve_program(folder, workspace, "-m", GEMINI, environment=environment, loaded=loaded_isthmus)
        program = await stack.enter_async_context(running)
        yield Served(program, {GEMINI: gemini, ANTHROPIC: anthropic, OPENAI: openai}, folder, workspace)


def file(version: str, data: str, media_type: str | None = None, name: str = "dot.png") -> Mapping[str, Any]:
    """Return a file part with these bytes in base64."""
    if version == "0.3":
        return {
            "kind": "file",
            "file": {"bytes": data, "name": name, **({"mimeType": media_type} if media_type else {})},
        }
    return {"raw": data, "filename": name, **({"mediaType": media_type} if media_type else {})}


def text(version: str, words: str) -> Mapping[str, Any]:
    """Return a text part."""
    return {"kind": "text", "text": words} if version == "0.3" else {"text": words}


def state(answer: Mapping[str, Any]) -> str:
    """Return the state of the task in a response to a message."""
    task = answer["result"].get("task") or answer["result"]
    return task["status"]["state"].removeprefix("TASK_STATE_").lower()


each_version = pytest.mark.parametrize("version", ["0.3", "1.0"])


@each_version
@pytest.mark.parametrize("model", ON_THE_WIRE)
async def test_an_image_of_a_message_reaches_the_model_in_the_form_of_its_provider(
    served: Served, model: str, version: str
) -> None:
    parts = (text(version, "What is this?"), file(version, PNG, "image/png"))
    answer = await served.post(version, model, *parts, messageId=f"{model} {version}")
    assert state(answer) == "completed"
    sent = served.parts_sent(model)
    assert ON_THE_WIRE[model] in sent
    assert "What is this?" in str(sent)
    assert str(sent).count(PNG) == 1


@each_version
@pytest.mark.parametrize("stated", [None, "image/jpeg", "application/octet-stream"])
async def test_an_image_is_what_its_bytes_are_whatever_the_client_calls_it(
    served: Served, stated: str | None, version: str
) -> None:
    answer = await served.post(version, GEMINI, file(version, PNG, stated), messageId=f"{stated} {version}")
    assert state(answer) == "completed"
    assert ON_THE_WIRE[GEMINI] in served.parts_sent(GEMINI)


REFUSED = [
    (GEMINI, "a.zip", "application/zip", b"PK\xff\xfe", "the model does not accept application/zip"),
    (GEMINI, "a.mp4", "video/mp4", b"\0\0\0 ftypisom\xff", "the model does not accept video/mp4"),
    (GEMINI, "a.bin", None, b"\xff\xfe", "the model does not accept a file of unknown type"),
    (GEMINI, "a.png", "image/png", b"\xff\xfe", "its bytes are not an image of a known kind"),
    (OPENAI, "a.pdf", "application/pdf", b"%PDF-1.7\xff", "the model does not accept application/pdf"),
    (ANTHROPIC, "a.wav", "audio/wav", b"RIFF\xff\xff\xff\xffWAVE", "the model does not accept audio/wav"),
    (ANTHROPIC, "a.png", "image/png", base64.b64decode(PNG) + bytes(4_000_000), "it has more than the 3,932,160 bytes"),
]


@each_version
@pytest.mark.parametrize(("model", "name", "stated", "data", "why"), REFUSED)
async def test_what_the_sessions_model_does_not_take_is_refused_before_there_is_a_task(
    served: Served, model: str, name: str, stated: str | None, data: bytes, why: str, version: str
) -> None:
    asked, kept = served.asked(), served.kept_files()
    good = file(version, PNG, "image/png")
    parts = (text(version, "Look."), good, file(version, base64.b64encode(data).decode(), stated, name))
    answer = await served.post(version, model, *parts, messageId=f"{name} {stated} {version}")
    assert answer["error"]["code"] == -32005
    assert f"the file {name}" in answer["error"]["message"]
    assert why in answer["error"]["message"]
    assert "image/png" in answer["error"]["message"]
    assert (served.asked(), served.kept_files()) == (asked, kept)


@each_version
async def test_a_message_has_no_more_files_than_are_kept(served: Served, version: str) -> None:
    kept = served.kept_files()
    answer = await served.post(version, GEMINI, *[file(version, PNG, "image/png")] * 51, messageId=f"51 {version}")
    assert answer["error"]["code"] == -32005
    assert "51 files" in answer["error"]["message"]
    assert "at most 50" in answer["error"]["message"]
    assert served.kept_files() == kept


@each_version
async def test_a_request_that_is_too_large_is_refused_with_the_size_that_is_taken(served: Served, version: str) -> None:
    answer = await served.post(version, GEMINI, file(version, PNG + "A" * 20_000_000, "image/png"))
    assert answer["http"] == 413
    assert "20000000 bytes" in answer["error"]


@each_version
async def test_a_file_by_its_address_is_told_to_the_model_and_fetched_by_nobody(served: Served, version: str) -> None:
    url = f"{served.wires[GEMINI].base_url}/dot.png"
    at = {"kind": "file", "file": {"uri": url, "mimeType": "image/png"}} if version == "0.3" else {"url": url}
    answer = await served.post(version, GEMINI, text(version, "Look."), at, messageId=f"url {version}")
    assert state(answer) == "completed"
    assert url in str(served.parts_sent(GEMINI))
    assert not [request for request in served.wires[GEMINI].requests if request.path.endswith("dot.png")]


async def test_a_session_goes_on_with_the_model_that_it_has_chosen(served: Served) -> None:
    """Send a PDF document: gemini, the server's default, reads it, and the session's model does not."""
    first = await served.post("0.3", OPENAI, text("0.3", "Hello."), contextId="chosen")
    assert state(first) == "completed"
    pdf = file("0.3", base64.b64encode(b"%PDF-1.7\xff").decode(), "application/pdf", "a.pdf")
    headers = {"X-A2A-Extensions": URI, "Authorization": f"Bearer {served.program.token}"}
    async with plain_client(headers=headers) as http:
        params = prompt("", parts=[pdf], contextId="chosen")
        error = (await http.post(served.program.url, json=rpc("message/send", params))).json()["error"]
        assert "the model does not accept application/pdf" in error["message"]
        params = prompt("", parts=[pdf], taskId=first["result"]["id"])
        error = (await http.post(served.program.url, json=rpc("message/send", params))).json()["error"]
        assert "the model does not accept application/pdf" in error["message"]


async def test_the_card_lists_what_the_servers_own_model_takes(served: Served) -> None:
    async with plain_client() as http:
        card = (await http.get(served.program.url + ".well-known/agent-card.json")).json()
    modes = card["defaultInputModes"]
    assert {"text/plain", "application/json", "image/png", "image/jpeg", "image/webp", "application/pdf"} <= {*modes}
    assert "image/gif" not in modes  # gemini does not accept it
    assert card["skills"][0]["inputModes"] == modes
