"""The workbench in Chromium: bytes and time of its first paint, CPU of the server per page, memory of a long task.

Beside it `opencode web`, whose page comes from its program as ours does: the first paint and idle pages. Its tasks
cannot be compared here: they cannot be begun with 16,000 events, and its page paces what it draws.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.acp import OPENCODE
from bench.figures import Figure, at_most, beside
from bench.processes import ROOT, clean_home, tree_cpu

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ROUNDS = 3
PAGES = 4
"""Number of pages of one browser that are connected at a time; a browser opens six connections to one host."""
IDLE_SECONDS = 15.0
STREAM_SECONDS = 15.0
EVENTS_PER_SECOND = 100
EVENTS = 16_000
FIRST_PAINT_KIB = 200.0
HEAP_MIB = 60.0
IDLE_CPU = 0.2
"""Budget of one idle page: CPU of the server, in percent of one core."""
START_SECONDS = 60.0
ANYTHING = "button:visible, a[href]:visible, textarea:visible"
"""Whatever a user can act on."""
_PIECES = int(EVENTS_PER_SECOND * (2 * STREAM_SECONDS + 30))
# Each word is another one, since the agent ends answers that repeat themselves.
_STEPS = [step for number in range(_PIECES) for step in ({"text": f"word{number} "}, {"delay": 1 / EVENTS_PER_SECOND})]
SCRIPT: Mapping[str, Any] = {
    "name": "practice",
    "scenarios": [
        {"prompt": ".", "replies": [{"steps": _STEPS}]},
    ],
}


@dataclass(frozen=True, slots=True)
class FirstPaint:
    """The first visit of a page: KiB on the wire, and seconds until something can be acted on."""

    kib: float
    seconds: float


def run(rounds: int | None) -> list[Figure]:
    """Measure our page, and OpenCode's where it is installed."""
    sys.path.append(str(ROOT / "tests"))
    from support.long_tasks import long_task, seed
    from support.workbench import chromium, desktop, workbench

    count = rounds or ROUNDS
    with clean_home() as environment, chromium() as browser:
        folder, work = Path(environment["HOME"]), Path(environment["PWD"])
        seed(folder / "data", work, "long", long_task(EVENTS), "work for hours")
        with workbench(folder, work, json.dumps(SCRIPT)) as served, desktop(browser) as context:
            assert served.process is not None
            page = served.enter(context)
            stored = context.storage_state()
            ours = [_first_paint(browser, f"{served.url}ui/", stored) for _ in range(count)]
            idle = _idle_cpu(context, served.process.pid, f"{served.url}ui/")
            served.prompt(page, "write at length")
            page.wait_for_selector("text=word9")
            task = page.url
            page.close()
            streaming = _page_cpu(context, served.process.pid, task, STREAM_SECONDS)
            heap, elements, seconds = _long_task(context, f"{served.url}ui/task/long")
        theirs, their_idle, peer = _opencode(browser, environment, count)
    return [
        *_first(ours, theirs, peer),
        _beside("CPU of the server per idle page", idle, "%", peer, their_idle, IDLE_CPU),
        Figure(f"CPU of the server per page at {EVENTS_PER_SECOND} events/s", streaming, "%"),
        at_most(f"heap after {EVENTS} events", heap, "MiB", HEAP_MIB),
        at_most("elements in the document then", elements, "", 3000),
        Figure("time to its last event", seconds, "s"),
    ]


def _first(ours: Sequence[FirstPaint], theirs: Sequence[FirstPaint], peer: str) -> Generator[Figure]:
    yield _beside(
        "first paint, compressed",
        median(paint.kib for paint in ours),
        "KiB",
        peer,
        median(paint.kib for paint in theirs) if theirs else None,
        FIRST_PAINT_KIB,
    )
    seconds = median(paint.seconds for paint in ours)
    if theirs:
        yield beside("interactive after", seconds, "s", peer, median(paint.seconds for paint in theirs), at_most=1)
    else:
        yield Figure("interactive after", seconds, "s")


def _beside(name: str, value: float, unit: str, peer: str, peer_value: float | None, limit: float) -> Figure:
    """Return a figure with an absolute budget, beside the peer's if there is one."""
    return Figure(name, value, unit, peer, peer_value, f"<= {limit:g} {unit}", value <= limit)


def _first_paint(browser: "Browser", url: str, stored: Any = None) -> FirstPaint:
    """Visit a page with an empty cache until the network is quiet."""
    from support.page_measures import received_bytes

    with browser.new_context(storage_state=stored) as context:
        page = context.new_page()
        sizes = received_bytes(page)
        begin = time.perf_counter()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(ANYTHING)
        seconds = time.perf_counter() - begin
        page.wait_for_timeout(1500)  # an event stream never ends, so that the network is never idle
        return FirstPaint(sum(sizes) / 1024, seconds)


def _idle_cpu(context: "BrowserContext", pid: int, url: str) -> float:
    return _page_cpu(context, pid, url, IDLE_SECONDS)


def _page_cpu(context: "BrowserContext", pid: int, url: str, seconds: float) -> float:
    """Return the CPU that a server uses for each page, in percent of one core, above what it uses without pages."""
    without = _cpu(pid, seconds)
    pages: list[Page] = []
    for _ in range(PAGES):
        page = context.new_page()
        page.goto(url)
        page.wait_for_selector(ANYTHING)
        pages.append(page)
    pages[-1].wait_for_timeout(2000)
    used = _cpu(pid, seconds)
    for page in pages:
        page.close()
    return max(0.0, used - without) / PAGES


def _cpu(pid: int, seconds: float) -> float:
    before, begin = tree_cpu(pid), time.perf_counter()
    time.sleep(seconds)
    return (tree_cpu(pid) - before) / (time.perf_counter() - begin) * 100


def _long_task(context: "BrowserContext", url: str) -> tuple[float, float, float]:
    """Return the heap in MiB after garbage collection, the number of elements, and the time to the last event."""
    from support.page_measures import heap_bytes

    page = context.new_page()
    begin = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(f"text=Step {EVENTS // 16 - 1} is over.")
    seconds = time.perf_counter() - begin
    heap = heap_bytes(page) / 2**20
    elements = page.evaluate("document.getElementsByTagName('*').length")
    page.close()
    return heap, float(elements), seconds


def _opencode(
    browser: "Browser", environment: Mapping[str, str], count: int
) -> tuple[list[FirstPaint], float | None, str]:
    """Return the first paints and the CPU per idle page of OpenCode's page; nothing where it is not installed."""
    binary = OPENCODE / "bin" / "opencode"
    if not binary.is_file():
        return [], None, ""
    version = json.loads((OPENCODE / "package.json").read_text(encoding="utf-8"))["version"]
    with _opencode_server(str(binary), environment) as (pid, url):
        paints = [_first_paint(browser, url) for _ in range(count)]
        with browser.new_context() as context:
            return paints, _idle_cpu(context, pid, url), f"opencode {version} web"


@contextmanager
def _opencode_server(binary: str, environment: Mapping[str, str]) -> Generator[tuple[int, str]]:
    variables = {**environment, "OPENCODE_DISABLE_MODELS_FETCH": "1", "BROWSER": "true"}
    process = subprocess.Popen(
        [binary, "serve", "--port", "0"],
        env=variables,
        cwd=environment["PWD"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        url = next((line.split()[-1] for line in process.stdout if "listening on" in line), None)
        if url is None:
            raise RuntimeError("opencode ended before it listened")
        yield process.pid, url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
