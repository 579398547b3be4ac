"""The workbench in Chromium: its first visit, CPU of the server per page, long tasks and large changes.

Beside it `opencode web`, whose page comes from its program as ours does: the first visit and idle pages. Its tasks
cannot be compared here: they cannot be begun with 50,000 events, and its page paces what it draws.
"""

import json
import os
import re
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
from bench.figures import Figure, at_most, beside, percentile
from bench.processes import ROOT, clean_home, tree_cpu

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from support.workbench import Workbench

ROUNDS = 3
PAGES = 4
"""Number of pages of one browser that are connected at a time; a browser opens six connections to one host."""
IDLE_SECONDS = 15.0
STREAM_SECONDS = 15.0
EVENTS_PER_SECOND = 100
EVENTS = 50_000
ENTRY_KIB = 95.0
FIRST_VISIT_KIB = 200.0
HEAP_MIB = 60.0
FRAME_MS = 50.0
"""Budget of the frame that 95 of 100 are quicker than while a long task is scrolled."""
DIFF_BYTES = 5_000_000
DIFF_SECONDS = 1.0
"""Budget from a click on a question about a file of :data:`DIFF_BYTES` to its changed line on the screen."""
SCROLLS = 120
IDLE_CPU = 0.2
"""Budget of one idle page: CPU of the server, in percent of one core."""
START_SECONDS = 60.0
ANYTHING = "button:visible, a[href]:visible, textarea:visible"
"""Whatever a user can act on."""
_SCROLLED = """async count => {
  const list = document.querySelector('isthmus-items'), times = [];
  const frame = () => new Promise(done => requestAnimationFrame(done));
  let before = await frame();
  for (let step = 0; step < count; step += 1) {
    list.scrollTop = step % 4 ? list.scrollTop - 400 : list.scrollHeight * (1 - step / count);
    const now = await frame();
    times.push(now - before);
    before = now;
  }
  return times;
}"""
"""Scroll through a list: steps of less than a screen, and a jump each four; return the milliseconds of each frame."""
_PIECES = int(EVENTS_PER_SECOND * (2 * STREAM_SECONDS + 30))
# Each word is another one, since the agent ends answers that repeat themselves.
_STEPS = [step for number in range(_PIECES) for step in ({"text": f"word{number} "}, {"delay": 1 / EVENTS_PER_SECOND})]
_EDIT = {"file_path": "large.txt", "old_string": "the needle", "new_string": "another needle"}
SCRIPT: Mapping[str, Any] = {
    "name": "practice",
    "scenarios": [
        {"prompt": "replace", "replies": [{"call": {"name": "replace", "arguments": _EDIT}}, {"text": "Done."}]},
        {"prompt": ".", "replies": [{"steps": _STEPS}]},
    ],
}


@dataclass(frozen=True, slots=True)
class FirstVisit:
    """The first visit of a page: KiB on the wire, seconds until something can be acted on, and MiB of its heap then."""

    kib: float
    seconds: float
    heap: float


@dataclass(frozen=True, slots=True)
class LongTask:
    """A page with a task of :data:`EVENTS` events; times in seconds, frames in milliseconds, the heap in MiB."""

    seconds: float
    """Time to its last event."""
    frame: float
    """Time of a frame while it is scrolled that 95 of 100 do not exceed."""
    heap: float
    """Heap once it was scrolled."""
    elements: float


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
            ours = [_first_visit(browser, f"{served.url}ui/", stored) for _ in range(count)]
            idle = _idle_cpu(context, served.process.pid, f"{served.url}ui/")
            served.prompt(page, "write at length")
            page.wait_for_selector("text=word9")
            task = page.url
            page.close()
            streaming = _page_cpu(context, served.process.pid, task, STREAM_SECONDS)
            long = _long_task(context, f"{served.url}ui/task/long")
            served.cancel_tasks()
            diff = median(_large_diff(context, served, number) for number in range(count))
        theirs, their_idle, peer = _opencode(browser, environment, count)
    return [
        *_first(ours, theirs, peer),
        _beside("CPU of the server per idle page", idle, "%", peer, their_idle, IDLE_CPU),
        Figure(f"CPU of the server per page at {EVENTS_PER_SECOND} events/s", streaming, "%"),
        at_most(f"frame of {EVENTS} events, 95 of 100", long.frame, "ms", FRAME_MS),
        at_most("heap once they were scrolled", long.heap, "MiB", HEAP_MIB),
        at_most("elements in the document then", long.elements, "", 3000),
        Figure("time to their last one", long.seconds, "s"),
        at_most(f"first hunk of a file of {DIFF_BYTES // 1_000_000} MB", diff, "s", DIFF_SECONDS),
    ]


def _first(ours: Sequence[FirstVisit], theirs: Sequence[FirstVisit], peer: str) -> Generator[Figure]:
    yield at_most("first load, compressed", _entry_kib(), "KiB", ENTRY_KIB)
    kib, their_kib = ([visit.kib for visit in visits] for visits in (ours, theirs))
    yield _beside("first visit, on the wire", median(kib), "KiB", peer, _median(their_kib), FIRST_VISIT_KIB)
    heap, their_heap = ([visit.heap for visit in visits] for visits in (ours, theirs))
    yield _beside("heap of the first page", median(heap), "MiB", peer, _median(their_heap), HEAP_MIB)
    seconds = median(visit.seconds for visit in ours)
    if theirs:
        yield beside("interactive after", seconds, "s", peer, median(visit.seconds for visit in theirs), at_most=1)
    else:
        yield Figure("interactive after", seconds, "s")


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _entry_kib() -> float:
    """Return the size of what a first visit loads, as the gate of the page counts it."""
    said = subprocess.run(
        [str(ROOT / ".venv" / "bin" / "node"), "budget.js"], cwd=ROOT / "frontend", capture_output=True, text=True
    ).stdout
    found = re.search(r"first load of the page: ([\d.]+) KiB", said)
    if found is None:
        raise RuntimeError(f"expected the size of the first load from frontend/budget.js, received {said[:200]!r}")
    return float(found[1])


def _beside(name: str, value: float, unit: str, peer: str, peer_value: float | None, limit: float) -> Figure:
    """Return a figure with an absolute budget, beside the peer's if there is one."""
    return Figure(name, value, unit, peer, peer_value, f"<= {limit:g} {unit}", value <= limit)


def _first_visit(browser: "Browser", url: str, stored: Any = None) -> FirstVisit:
    """Visit a page with an empty cache until the network is quiet."""
    from support.page_measures import heap_bytes, received_bytes

    with browser.new_context(storage_state=stored) as context:
        page = context.new_page()
        sizes = received_bytes(page)
        begin = time.perf_counter()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(ANYTHING)
        seconds = time.perf_counter() - begin
        page.wait_for_timeout(1500)  # an event stream never ends, so that the network is never idle
        return FirstVisit(sum(sizes) / 1024, seconds, heap_bytes(page) / 2**20)


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


def _long_task(context: "BrowserContext", url: str) -> LongTask:
    from support.page_measures import heap_bytes

    page = context.new_page()
    begin = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(f"text=Step {EVENTS // 16 - 1} is over.")
    seconds = time.perf_counter() - begin
    frames: list[float] = page.evaluate(_SCROLLED, SCROLLS)
    heap = heap_bytes(page) / 2**20
    elements = page.evaluate("document.getElementsByTagName('*').length")
    page.close()
    return LongTask(seconds, percentile(frames, 95), heap, float(elements))


def _large_diff(context: "BrowserContext", served: "Workbench", number: int) -> float:
    """Return the time in seconds from a click on the question of a large file to its changed line on the screen."""
    from playwright.sync_api import expect

    lines = [f"{at:8} of the lines of a large file, none like another\n" for at in range(DIFF_BYTES // 56)]
    lines.insert(len(lines) // 2, "the needle\n")
    (served.workspace / "large.txt").write_text("".join(lines), "utf-8")
    page = context.new_page()
    page.goto(f"{served.url}ui/devices")
    served.begin(page, f"replace it, {number}")
    expect(page).to_have_title(re.compile(r"\(1\)"))
    begin = time.perf_counter()
    page.get_by_role("link", name="Inbox").first.click()
    page.wait_for_selector("isthmus-diff >> text=another needle")
    seconds = time.perf_counter() - begin
    page.close()
    served.cancel_tasks()
    return seconds


def _opencode(
    browser: "Browser", environment: Mapping[str, str], count: int
) -> tuple[list[FirstVisit], float | None, str]:
    """Return the first visits and the CPU per idle page of OpenCode's page; nothing where it is not installed."""
    binary = OPENCODE / "bin" / "opencode"
    if not binary.is_file():
        return [], None, ""
    version = json.loads((OPENCODE / "package.json").read_text(encoding="utf-8"))["version"]
    with _opencode_server(str(binary), environment) as (pid, url):
        visits = [_first_visit(browser, url) for _ in range(count)]
        with browser.new_context() as context:
            return visits, _idle_cpu(context, pid, url), f"opencode {version} web"


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
