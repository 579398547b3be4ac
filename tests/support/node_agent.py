"""The plain agent on the official JavaScript SDK (``tests/peers/node/serve_a2a.mjs``) as a program."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from support.programs import NODE_PEERS, node_package, require

SDKS = {"0.3": "@a2a-js/sdk", "1.0": "a2a-js-1"}


@asynccontextmanager
async def node_agent(version: str, binding: str, *flags: str) -> AsyncGenerator[str]:
    """Start the agent with one version of A2A over one binding, and yield its URL."""
    node_package(SDKS[version])
    process = await asyncio.create_subprocess_exec(
        str(require("node")),
        str(NODE_PEERS / "serve_a2a.mjs"),
        version,
        binding,
        *flags,
        cwd=NODE_PEERS,
        env={**os.environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # The node of the virtual environment is a script that starts the real one: both are killed.
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
