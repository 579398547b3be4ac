"""Imports of the MCP SDK: in a thread, since they take about a second, and one at a time.

The SDK's modules import one another in circles, so two threads that begin at different ones would deadlock.
"""

import asyncio
import importlib
import threading

_LOCK = threading.Lock()


async def import_with_sdk(module: str) -> None:
    """Import a module of the SDK, or one that imports the SDK."""
    await asyncio.to_thread(_import, module)


def _import(module: str) -> None:
    with _LOCK:
        importlib.import_module(module)
