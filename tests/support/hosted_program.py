"""A hosted agent as a process of its own, with the options that a test gives it."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.example_program import READY, ExampleProgram

PROGRAM = Path(__file__).resolve().with_name("hosted_asking_program.py")
TOKEN = "token-of-the-owner"


@asynccontextmanager
async def hosted_program(
    folder: Path,
    workspace: Path,
    *arguments: str,
    program: Path = PROGRAM,
    python: str | Path = sys.executable,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncGenerator[ExampleProgram]:
    """Run the agent with its data in ``folder``, whose name it tells; it is killed afterwards.

    ``program`` may be another one that takes Hosting's fields and the folder's name first.
    """
    folder.mkdir(exist_ok=True)
    given = {"folder": str(folder), "workspace": str(workspace), "token": TOKEN, **options}
    log_path = folder / "program.log"
    with log_path.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(str(python), str(program), json.dumps(given), folder.name, *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            cwd=workspace,
            env={**os.environ, **(environment or {})},
        )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().rstrip("\n")
        assert line.startswith(READY), f"{line!r}; {log_path.read_text(encoding='utf-8')}"
        yield ExampleProgram(process, line.removeprefix(READY), TOKEN)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
