"""What another process finds of a person's MCP servers."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent / "mcp_tools_program.py"


async def process_lists(home: Path, workspace: Path, **environment: str) -> dict[str, Any]:
    """The names of its ``tools``, and state and problem of each of its ``servers``."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        str(home),
        str(workspace),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(home), **environment},
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    return json.loads(out)
