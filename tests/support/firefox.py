"""A headless Firefox that ``make engines`` unpacks, driven by WebDriver BiDi, of which only what the tests use is here.

Playwright drives a Firefox of its own, which is not reached everywhere, and needs commands that this one lacks.
"""

import json
import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from support.programs import unavailable
from support.waiting import eventually

FOLDER = Path(__file__).parents[2] / ".cache" / "firefox" / "usr" / "lib"
SECONDS = 60.0
"""Maximum time for the start, and for each command."""
PREFERENCES = "".join(f'user_pref("ui.{name}PointerCapabilities", 1);\n' for name in ("primary", "all"))
"""Preferences by which the only pointer is a finger: coarse, and without hovering."""


@dataclass
class FirefoxPage:
    """A page of Firefox."""

    connection: ClientConnection
    context: str = ""
    _numbers: Any = field(default_factory=count)

    def command(self, method: str, **params: Any) -> Any:
        """Return the result of a command.

        Raises:
            AssertionError: the browser refuses it.
        """
        number = next(self._numbers)
        self.connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.connection.recv(SECONDS))
            if answer.get("id") == number:
                assert answer["type"] == "success", answer
                return answer["result"]

    def goto(self, url: str) -> None:
        """Load a page, and wait until all of it is there."""
        self.command("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def resize(self, width: int, height: int) -> None:
        """Give the page a size in px."""
        size = {"width": width, "height": height}
        self.command("browsingContext.setViewport", context=self.context, viewport=size)

    def call(self, function: str, *arguments: Any) -> Any:
        """Return what a JavaScript function returns, which must be JSON, as its arguments are."""
        given = ",".join(map(json.dumps, arguments))
        result = self.command(
            "script.callFunction",
            functionDeclaration=f"async () => JSON.stringify(await ({function})({given}) ?? null)",
            target={"context": self.context},
            awaitPromise=True,
        )
        assert result["type"] == "success", result
        return json.loads(result["result"]["value"])

    def tap(self, selector: str, text: str = "") -> None:
        """Touch the middle of the first element of a selector that has a text."""
        x, y = self.call(
            """(selector, text) => {
                const all = [...document.querySelectorAll(selector)];
                const box = all.find(one => one.textContent.includes(text)).getBoundingClientRect();
                return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)];
            }""",
            selector,
            text,
        )
        finger = {"type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"}}
        steps = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        self.command("input.performActions", context=self.context, actions=[{**finger, "actions": steps}])


@contextmanager
def firefox(profile: Path) -> Generator[FirefoxPage]:
    """Start Firefox with an empty profile in a folder; the page is its only one. It is ended afterwards."""
    program = FOLDER / "firefox-esr" / "firefox-esr"
    if not program.is_file():
        unavailable("Firefox is not in .cache/firefox; `make engines` fetches it from Debian's packages")
    libraries = [str(path) for path in FOLDER.glob("*-linux-gnu*")]
    profile.mkdir()
    (profile / "user.js").write_text(PREFERENCES, "utf-8")
    with (profile / "firefox.log").open("wb") as log:
        process = subprocess.Popen(
            [str(program), "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "LD_LIBRARY_PATH": ":".join([*libraries, str(program.parent)])},
        )
    with process:
        try:
            with connect(f"{_address(profile)}/session", max_size=None, proxy=None) as connection:
                page = FirefoxPage(connection)
                page.command("session.new", capabilities={})
                page.context = page.command("browsingContext.getTree")["contexts"][0]["context"]
                yield page
        finally:
            process.kill()


def _address(profile: Path) -> str:
    """Return the URL of the browser that runs with a profile, once it listens."""
    log = profile / "firefox.log"
    found = eventually(lambda: re.search(r"WebDriver BiDi listening on (ws://\S+)", log.read_text("utf-8", "replace")))
    assert found is not None
    return found[1]
