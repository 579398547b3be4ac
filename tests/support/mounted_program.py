"""examples/agents/mounted_agents.py as a process under uvicorn, and clients that log in to it as its users do."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from support.example_program import EXAMPLES
from support.waiting import eventually_async

PASSWORD = "correct horse"
LISTENS = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:[0-9]+) ")


@dataclass(frozen=True, slots=True)
class MountedProgram:
    """The listening application; ``url`` has no slash at its end."""

    process: asyncio.subprocess.Process
    url: str

    @asynccontextmanager
    async def user(self, name: str) -> AsyncGenerator[httpx.AsyncClient]:
        """Log a user in; yield an HTTP client with the cookie from that login."""
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=60) as http:
            answer = await http.post("/login", json={"user": name, "password": PASSWORD})
            assert answer.status_code == 200, answer.text
            yield http

    async def kill(self) -> None:
        """Kill the process, as ``kill -9`` does."""
        self.process.kill()
        await asyncio.wait_for(self.process.wait(), 60)


@asynccontextmanager
async def mounted_program(folder: Path, environment: Mapping[str, str]) -> AsyncGenerator[MountedProgram]:
    """Run the application with its data in ``folder``; kill it afterwards."""
    log_path = folder / "uvicorn.log"
    log_path.unlink(missing_ok=True)
    with log_path.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "--port", "0", "--ws", "none"),
            "mounted_agents:application",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, "DATA": str(folder / "data"), "SECRET": "s", "PASSWORD": PASSWORD, **environment},
        )

    def address() -> str | None:
        said = log_path.read_text(encoding="utf-8")
        assert process.returncode is None, said
        found = LISTENS.search(said)
        return found.group(1) if found else None

    try:
        url = await eventually_async(address, 60, what="uvicorn listens")
        assert url is not None
        yield MountedProgram(process, url)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
