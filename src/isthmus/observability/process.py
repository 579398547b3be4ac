"""Processor time and memory of this process, under the names that Prometheus expects of every program."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from isthmus.observability.exposition import Family, counter, gauge

STARTED = time.time()
"""Unix time at which this module was loaded, which is when a server starts."""


def process_families() -> Iterator[Family]:
    """Yield the metrics of this moment."""
    yield counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", time.process_time())
    yield gauge("process_start_time_seconds", "Start time of the process in Unix seconds.", STARTED)
    with contextlib.suppress(OSError):  # A process without free descriptors is what the rest of the page shows.
        yield gauge("process_resident_memory_bytes", "Resident memory size in bytes.", _resident_bytes())
        if sys.platform == "linux":
            files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count without thousands of objects
            yield gauge("process_open_fds", "Number of open file descriptors.", files)


def _resident_bytes() -> int:
    if sys.platform == "linux":
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    import psutil

    return psutil.Process().memory_info().rss
