"""Drives the A2A clients of agent frameworks, in their environment: the modules ``drive_NAME`` beside this one.

    python converse.py NAME...

Importing a framework takes seconds, so one program drives all conversations with those of an environment. It reads one
per line of stdin:

    {"framework": "NAME", "url": "...", "token": "...", "mode": "...", "texts": ["...", ...]}

``texts`` are what the user says, one after the other; ``mode`` is one of the framework's own ways to talk to an agent.
The program writes one line to stdout for each: ``{"handed": [...]}``, with an object for each text: what the framework
hands to its user. ``text`` is the answer, ``question`` what the agent asks, and ``pieces`` are those of a streamed
answer. A conversation that fails is ``{"error": "..."}``.
"""

import asyncio
import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any


async def converse(names: list[str], output: Any) -> None:
    """Have the conversations of stdin until it ends."""
    frameworks = {name: import_module(f"drive_{name}") for name in names}
    while line := await asyncio.to_thread(sys.stdin.readline):
        case = json.loads(line)
        conversation = frameworks[case["framework"]].conversation
        try:
            handed = await asyncio.wait_for(conversation(case["url"], case["token"], case["mode"], case["texts"]), 60)
            found: dict[str, Any] = {"handed": handed}
        except Exception as error:
            traceback.print_exc()
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), file=output, flush=True)


if __name__ == "__main__":
    # Frameworks print panels and warnings: only the lines of this program may be on stdout.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as lines:
        os.dup2(2, 1)
        asyncio.run(converse(sys.argv[1:], lines))
