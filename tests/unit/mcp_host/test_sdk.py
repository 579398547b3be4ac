"""The MCP SDK is imported by one thread at a time: its modules import one another in circles."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio
from isthmus.mcp_host.sdk import import_with_sdk

async def main():
    await asyncio.gather(
        import_with_sdk("isthmus.mcp_host.connection.attempt"), import_with_sdk("mcp.client.auth.utils")
    )
    print("imported")

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_connection_and_a_login_that_begin_at_once_do_not_deadlock() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "imported\n", ended.stderr[-500:]
