"""The command ``isthmus connect`` as a program: to ``isthmus serve``, gemini-cli-a2a-server, an agent on an SDK."""

import asyncio
import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from support.a2a_hosting import Everything, hosted
from support.a2a_serving import TOKEN
from support.gemini_a2a_server import gemini_a2a_server
from support.gemini_wire import GeminiWire
from support.isthmus_program import isthmus
from support.loaded_program import LoadedProgram
from support.programs import PYTHON_PEERS, python_peer
from support.scripted_wire import Call, Reply, Say
from support.serve_program import serve_program

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


async def connect(
    loaded: LoadedProgram,
    url: str,
    prompt: str | None,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *options: str,
    messages: str = "",
) -> tuple[int, str, str]:
    """Run one prompt, or messages on the standard input; return the exit status and the output."""
    arguments = ("connect", url, *(() if prompt is None else ("-p", prompt)), *options)
    variables = {**os.environ, **(environment or {})}
    run = partial(loaded.run, folder=folder, text=messages, environment=variables)
    ended = await asyncio.to_thread(run, *arguments)
    return ended.returncode, ended.stdout, ended.stderr


async def test_prompts_and_commands_of_our_own_server(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as program:
        token = {"ISTHMUS_A2A_TOKEN": program.token}
        assert await connect(loaded_isthmus, program.url, "hello", workspace, token) == (0, "You said: hello\n", "")
        below = ("--workspace", workspace.name)
        assert await connect(loaded_isthmus, program.url, "hello", workspace.parent, token, *below) == (
            0,
            "You said: hello\n",
            "",
        )
        messages = "".join(
            json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n" for text in ("one", "two")
        )
        both = ("--input-format", "stream-json", "-o", "stream-json")
        code, output, problems = await connect(
            loaded_isthmus, program.url, None, workspace, token, *both, messages=messages
        )
        lines = [json.loads(line) for line in output.splitlines()]
        assert (code, problems) == (0, "")
        assert [line["content"] for line in lines if line.get("role") == "assistant"] == [
            "You said: one",
            "You said: two",
        ]
        assert len({line["session_id"] for line in lines if line["type"] == "init"}) == 1
        code, output, _ = await connect(loaded_isthmus, program.url, "/help", workspace, token)
        assert code == 0
        assert "/memory show" in output
        code, _, problems = await connect(loaded_isthmus, program.url, "/memory nonsense", workspace, token)
        assert code != 0
        assert "memory" in problems
        code, _, problems = await connect(loaded_isthmus, program.url, "hello", workspace)
        assert code == 1
        assert "needs a token (401)" in problems
        code, _, problems = await connect(
            loaded_isthmus, program.url.replace("//", f"//{program.token}@"), "hello", workspace
        )
        assert code == 1
        assert "--token-file" in problems
        assert program.token not in problems


@pytest.mark.extended
async def test_prompts_and_commands_of_gemini_clis_server(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    with GeminiWire() as wire:
        async with gemini_a2a_server(tmp_path, workspace, wire) as server:
            wire.add(Reply.of(Say("Hello ", "there.")))
            assert await connect(loaded_isthmus, server.url, "Hello", workspace) == (0, "Hello there.\n", "")
            # Nobody can be asked: the edit is refused, and the output says so.
            wire.add(Reply.of(Call("write_file", {"file_path": str(workspace / "b.txt"), "content": "new\n"})))
            code, _, problems = await connect(loaded_isthmus, server.url, "Write b.txt", workspace)
            assert code == 57
            assert "refused: write_file" in problems
            assert not (workspace / "b.txt").exists()
            code, output, _ = await connect(loaded_isthmus, server.url, "/memory add Be brief", workspace)
            assert (code, output) == (0, 'Added memory: "Be brief"\n')


async def test_prompts_to_a_plain_agent(tmp_path: Path, loaded_isthmus: LoadedProgram) -> None:
    process = await asyncio.create_subprocess_exec(
        str(python_peer()),
        str(PYTHON_PEERS / "serve_a2a_1.py"),
        "JSONRPC",
        cwd=tmp_path,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        url = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
        assert await connect(loaded_isthmus, url, "Ada", tmp_path) == (
            0,
            "Hello Ada!\n\nThere you are.\n",
            "Let me see. \n",
        )
        assert await connect(loaded_isthmus, url, "message", tmp_path) == (0, "Just words.\n", "")
        code, _, problems = await connect(loaded_isthmus, url, "fail", tmp_path)
        assert (code, problems.splitlines()[-1]) == (1, "isthmus: I cannot.")
    finally:
        process.kill()
        await process.wait()


async def test_a_hosted_agent_needs_no_folder_and_has_no_options_to_advise(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISTHMUS_A2A_TOKEN", TOKEN)
    async with hosted(Everything(), workspace, workspaces=(workspace,)) as server:
        ended = await asyncio.to_thread(partial(isthmus, "connect", server.url, "-p", "you", folder=tmp_path))
    assert (ended.returncode, ended.stdout) == (57, "all is well\n\nPressed.\n")
    assert "refused: press needs permission; answer it without -p\n" in ended.stderr
