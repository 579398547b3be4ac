"""Compares the pages of the workbench with drawings of them: ``python scripts/compare_drawings.py FOLDER``.

FOLDER has the drawings as ``NAME.html``. Both are opened in the same Chromium, and a line is printed for each element
whose place, size, colours or font differ, in px: what is drawn, what there is, and the difference.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pictured_project as project
from support.isthmus_program import companion_program
from support.workbench import chromium, workbench
from workbench_pictures import ASKING, PHONE, Look, Scene, choose, proposed, wait_for_diff, write_project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TOLERANCE = 1.5
"""Difference in px that is none: borders may be inside or outside of a box."""
MEASURE = """selectors => Object.fromEntries(Object.entries(selectors).map(([name, selector]) => {
  const find = root => root.querySelector(selector) ?? [...root.querySelectorAll('isthmus-diff')]
    .map(host => host.shadowRoot?.querySelector(selector)).find(Boolean);
  const found = find(document);
  if (!found || !found.checkVisibility()) return [name, null];
  const { x, y, width, height } = found.getBoundingClientRect(), style = getComputedStyle(found);
  return [name, { x, y, width, height, ground: style.backgroundColor, colour: style.color,
    font: `${style.fontSize}/${style.lineHeight} ${style.fontWeight}`, radius: style.borderTopLeftRadius }];
}))"""
FRAME = {
    "nav": ".nav", "brand": ".nav .brand", "first link": ".nav > a, .nav .group a", "count": ".nav .count",
    "status line": "footer.status, .status", "key of the line": ".status kbd",
}  # fmt: skip
CARD = {
    "head of the card": "main .head:has(.asker, .pill), main.pane > .head", "pill": "main .pill.acc",
    "title": "main h2", "facts": "main .facts",
    "name of a fact": "main .facts dt", "fact": "main .facts dd",
    "head of the diff": "main .dhead",
    "actions": "main .actions", "first answer": "main .actions .primary",
    "second answer": "main .actions .b:nth-child(2)",
    "key of an answer": "main .actions kbd",
}  # fmt: skip
LIST = {
    "list": ".inbox", "head of the list": ".inbox .head", "title of the list": ".inbox h1", "row": ".inbox .item",
    "who": ".inbox .item .who", "time": ".inbox .item time", "last line": ".inbox .item .peek",
}  # fmt: skip
SESSION = {
    "head": "main .head", "title of the session": "main .head h1", "aside": ".aside",
    "head of the aside": ".aside .head",
    "calls": "main .calls", "call": "main .calls .call", "text": "main .prose p", "question": "main .inline",
    "first answer": "main .inline .primary",
}  # fmt: skip
FORM = {
    "title": "main h2", "option": "main label.opt, main .opt", "field": "main input[type=text], main .field",
    "facts": "main .facts", "actions": "main .actions", "first answer": "main .actions .primary",
}  # fmt: skip
SHEET = {
    "head": ".sheet-head", "title": ".sheet-head h1", "line of the agent": ".one", "file": ".dhead",
    "foot": ".actions, .foot",
    "main answer": ".actions .primary, .foot .primary",
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A drawing and the page beside it."""

    drawing: str
    look: Look
    elements: Mapping[str, str]
    chosen: str = ""
    """Words of the question of the inbox that is chosen; without any it is a session."""


def pairs() -> Generator[Pair]:
    """Yield what is compared."""
    wide, dark, narrow = Look(), Look("dark"), Look("light", PHONE)
    yield Pair("session-light", wide, FRAME | SESSION)
    yield Pair("inbox-light", wide, FRAME | LIST | CARD, "schedule.py")
    yield Pair("inbox-dark", dark, FRAME | LIST | CARD, "schedule.py")
    yield Pair("inbox-light", Look("light", (1100, 800)), FRAME | LIST | CARD, "schedule.py")
    yield Pair("form-light", wide, FRAME | LIST | FORM, "Which zone")
    yield Pair("form-mcp-light", wide, LIST | FORM, "Which release")
    yield Pair("question-phone", narrow, SHEET, "schedule.py")


def shown(value: object) -> str:
    """Return a measure in short."""
    return f"{value:.0f}" if isinstance(value, float | int) else str(value)


def differences(drawn: Mapping[str, Any], ours: Mapping[str, Any]) -> Generator[str]:
    """Yield a line for each measure that differs."""
    for name, want in drawn.items():
        have = ours[name]
        if want is None or have is None:
            yield f"  {name}: {'not drawn' if want is None else 'drawn'}, {'not there' if have is None else 'there'}"
            continue
        for key, value in want.items():
            is_number = isinstance(value, float | int)
            if abs(have[key] - value) > TOLERANCE if is_number else have[key] != value:
                by = f" ({have[key] - value:+.0f})" if is_number else ""
                yield f"  {name} {key}: drawn {shown(value)}, ours {shown(have[key])}{by}"


def measured(page: "Page", elements: Mapping[str, str]) -> dict[str, Any]:
    """Return the measures of the elements of a page."""
    return dict(page.evaluate(MEASURE, dict(elements)))


def compare(scene: Scene, browser: "Browser", folder: Path, write: Callable[[str], object]) -> None:
    """Print what differs, drawing by drawing."""
    for pair in pairs():
        with pair.look.context(browser) as context:
            page = context.new_page()
            page.goto((folder / f"{pair.drawing}.html").as_uri())
            drawn = measured(page, pair.elements)
        path = "" if pair.chosen else f"task/{scene.tasks[project.FERRIES]}"
        with scene.page(pair.look, path) as page:
            if pair.chosen:
                choose(page, pair.chosen)
            if pair.chosen.startswith("Which"):
                page.locator("isthmus-form .actions").wait_for()
            else:
                wait_for_diff(page)
            page.evaluate("document.activeElement?.blur()")
            ours = measured(page, pair.elements)
        write(f"{pair.drawing} at {pair.look.size[0]} px, {pair.look.scheme}\n")
        write("".join(f"{line}\n" for line in differences(drawn, ours)))


@contextmanager
def pictured_scene(home: Path, browser: "Browser") -> Generator[Scene]:
    """Start the servers of the pictures in a folder of their own."""
    work, other = home / "work" / "harbour", home / "work" / "harbour-web"
    write_project(work)
    other.mkdir()
    (other / "package.json").write_text(project.PACKAGE, "utf-8")
    server = {"command": sys.executable, "args": [str(ASKING), str(home / "log")], "trust": True}
    (home / "log").touch()
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"tickets": server}}), "utf-8")
    with ExitStack() as stack:
        companion = stack.enter_context(companion_program(other))
        served = stack.enter_context(workbench(home, work, project.SCRIPT, "--mcp-config", str(home / "mcp.json")))
        changes = {other / "package.json": project.PACKAGE.replace("7.1.2", "7.1.4")}
        stack.enter_context(proposed(companion, "streamable-http-client", changes))
        yield Scene(browser, served)


def main() -> None:
    """Compare the pages with the drawings in the folder that is given."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: compare_drawings.py FOLDER")
    folder = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="drawings-") as name:
        os.environ.update({"HOME": name, "XDG_RUNTIME_DIR": name, "TMPDIR": name})
        with chromium() as browser, pictured_scene(Path(name), browser) as scene:
            compare(scene, browser, folder, sys.stdout.write)


if __name__ == "__main__":
    main()
