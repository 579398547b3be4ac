"""A hosted agent as a process of its own, with the options that a test gives it."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.example_program import READY, ExampleProgram
from support.loaded_program import LoadedProgram
from support.streamed_program import streamed_program

PROGRAM = Path(__file__).resolve().with_name("hosted_asking_program.py")
TOKEN = "token-of-the-owner"


@asynccontextmanager
async def hosted_program(
    folder: Path,
    workspace: Path,
    *arguments: str,
    program: Path = PROGRAM,
    loaded: LoadedProgram | None = None,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncGenerator[ExampleProgram]:
    """Run the agent with its data in ``folder``, whose name it tells; it is killed afterwards.

    ``program`` may be another one that takes Hosting's fields and the folder's name first; it is run by a copy of the
    process ``loaded``, by default of the one that has loaded Isthmus.
    """
    folder.mkdir(exist_ok=True)
    given = {"folder": str(folder), "workspace": str(workspace), "token": TOKEN, **options}
    log_path = folder / "program.log"
    with log_path.open("ab") as log:
        running = streamed_program(
            *(json.dumps(given), folder.name, *arguments),
            folder=workspace,
            errors=log.fileno(),
            environment={**os.environ, **(environment or {})},
            program=str(program),
            loaded=loaded,
            has_input=False,
        )
        async with running as process:
            line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().rstrip("\n")
            assert line.startswith(READY), f"{line!r}; {log_path.read_text(encoding='utf-8')}"
            yield ExampleProgram(process, line.removeprefix(READY), TOKEN)
