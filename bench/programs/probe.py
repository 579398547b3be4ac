"""Tells the figures of the process it runs in: a line on standard input asks, a line of JSON answers.

CPU comes from getrusage (microseconds), which an observer outside of the process cannot have everywhere.
"""

import asyncio
import json
import resource
import sys
import threading

import psutil


def start(url: str) -> None:
    """Say the URL and answer from now on, from a thread. Called on the running event loop."""
    loop = asyncio.get_running_loop()
    print(url, flush=True)
    threading.Thread(target=_run, args=(loop,), name="probe", daemon=True).start()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    process = psutil.Process()
    for _ in sys.stdin:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        figures = {
            "cpu": usage.ru_utime + usage.ru_stime,
            "memory": process.memory_info().rss / 2**20,
            "tasks": len(asyncio.all_tasks(loop)),
        }
        print(json.dumps(figures), flush=True)
