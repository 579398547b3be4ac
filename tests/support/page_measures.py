"""Measures of a page by the browser's debugging protocol: memory, work, and bytes on the wire."""

from typing import Any

from playwright.sync_api import Page


def debugging(page: Page) -> Any:
    """Return a session of the browser's debugging protocol with a page."""
    session: Any = page.context.new_cdp_session(page)
    return session


def heap_bytes(page: Page) -> float:
    """Return the heap that a page uses after garbage was collected."""
    session = debugging(page)
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"])


def received_bytes(page: Page) -> list[float]:
    """Return a list to which the size on the wire of each further response is added; the cache is off."""
    session = debugging(page)
    sizes: list[float] = []

    def add(event: Any) -> None:
        sizes.append(float(event["encodedDataLength"]))

    session.on("Network.loadingFinished", add)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    return sizes


class Work:
    """The seconds of work of a page's main thread, in processor time: other work on the machine does not count."""

    def __init__(self, page: Page) -> None:
        self._session = debugging(page)
        self._session.send("Performance.enable")

    def seconds(self) -> float:
        """Return the seconds since the page began."""
        metrics: list[dict[str, Any]] = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime"))
