"""Reports the figures of its own process: each line on standard input is answered by a line of JSON.

CPU comes from getrusage (microseconds), which is not available everywhere from outside the process.
"""

import asyncio
import json
import resource
import sys
import threading

import psutil


def start(url: str) -> None:
    """Print the URL, and answer from now on in a thread. Call it on the running event loop."""
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
