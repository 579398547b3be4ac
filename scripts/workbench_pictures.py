"""Draws the pictures of the workbench, from the real page and server, as PNG; part of ``make pictures``.

The model is a script and the project is small and fixed. What depends on the moment (codes, days, ages) is fixed, too.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.web.links import entry_link
from support.isthmus_program import companion_program
from support.workbench import Workbench, chromium, chromium_beside, workbench
from support.written_changes import User, watching_agent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
PUBLIC_URL = "https://harbour.example.org/"
CODE = "KM4RT7WX"
DAY = 1_790_000_000
"""Unix time of a day in September 2026."""
SCHEMES = ("light", "dark")
SCHEDULE = '''"""When ferries leave, and how late they are."""

from dataclasses import dataclass
from datetime import datetime, timedelta

GRACE = timedelta(minutes=5)


@dataclass(frozen=True)
class Sailing:
    departs: str
    left_at: str | None = None


def delay_of(sailing: Sailing, now: datetime) -> timedelta:
    """How late a sailing is; zero when it is on time."""
    due = datetime.fromisoformat(sailing.departs)
    if sailing.left_at is None:
        return max(now - due, timedelta(0))
    left = datetime.fromisoformat(sailing.left_at)
    return left - due


def is_late(sailing: Sailing, now: datetime) -> bool:
    """Whether the board says so."""
    return delay_of(sailing, now) > GRACE
'''
CHANGED = (
    SCHEDULE.replace(
        "from datetime import datetime, timedelta",
        "from datetime import datetime, timedelta\nfrom zoneinfo import ZoneInfo"
    )
    .replace('''    due = datetime.fromisoformat(sailing.departs)
    if sailing.left_at is None:
        return max(now - due, timedelta(0))
    left = datetime.fromisoformat(sailing.left_at)
    return left - due
''', '''    due = _moment(sailing.departs)
    left = now
    if sailing.left_at is not None:
        left = _moment(sailing.left_at)
    return max(left - due, timedelta(0))


def _moment(text: str) -> datetime:
    """The moment of a text; one without an offset is the harbour's time."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=HARBOUR)
    return moment
''').replace("GRACE = timedelta(minutes=5)", 'GRACE = timedelta(minutes=5)\nHARBOUR = ZoneInfo("Europe/Lisbon")')
)  # fmt: skip
TESTS = """from datetime import UTC, datetime

from schedule import Sailing, is_late


def test_a_sailing_without_an_offset_is_in_the_harbours_time() -> None:
    sailing = Sailing("2026-07-01T10:00")
    assert not is_late(sailing, datetime(2026, 7, 1, 9, 4, tzinfo=UTC))
"""
BOARD = """from schedule import Sailing, is_late


def line_of(sailing: Sailing, now) -> str:
    state = "late" if is_late(sailing, now) else "on time"
    return f"{sailing.departs}  {state}"
"""
BOARD_CHANGED = (
    BOARD.replace("import Sailing, is_late", "import Sailing, delay_of, is_late")
    .replace('''    state = "late" if is_late(sailing, now) else "on time"
''', '''    minutes = int(delay_of(sailing, now).total_seconds() // 60)
    state = f"{minutes} min late" if is_late(sailing, now) else "on time"
''')
)  # fmt: skip
NOTES = "# Notes\n\n- The board says how many minutes a sailing is late.\n"
SCRIPT = {
    "name": "demo-model",
    "scenarios": [
        {
            "prompt": "say how late",
            "replies": [
                {"call": {"name": "write_file", "arguments": {"file_path": "board.py", "content": BOARD_CHANGED}}},
                {"call": {"name": "write_file", "arguments": {"file_path": "NOTES.md", "content": NOTES}}},
                {"text": "The board says how late a sailing is."},
            ],
        },
        {
            "prompt": "board",
            "replies": [
                {
                    "thought": "**Where times are read**\n\nIt is an hour off in summer only: an offset is missing.",
                    "text": "The board is an hour off in summer. I look where times are read, then I mend it.",
                    "call": {
                        "name": "write_todos",
                        "arguments": {
                            "todos": [
                                {"description": "Find where times are read", "status": "completed"},
                                {"description": "Read times in the harbour's zone", "status": "in_progress"},
                                {"description": "Run the tests", "status": "pending"},
                            ]
                        },
                    },
                },
                {"call": {"name": "read_file", "arguments": {"file_path": "schedule.py"}}},
                {
                    "text": "`delay_of` compares times **without an offset**:\n\n"
                    "| sailing | due | read as |\n|---|---|---|\n"
                    "| Almada | 10:00 | 10:00 UTC |\n| Cacilhas | 10:20 | 10:20 UTC |\n",
                    "call": {
                        "name": "write_file",
                        "arguments": {"file_path": "schedule.py", "content": CHANGED},
                    },
                },
            ],
        },
        {
            "prompt": "tests pass",
            "replies": [
                {
                    "text": "I run them.",
                    "call": {
                        "name": "run_shell_command",
                        "arguments": {"command": "python -m pytest -q", "description": "Run the tests"},
                    },
                }
            ],
        },
        {
            "prompt": "test for summer",
            "replies": [
                {"call": {"name": "write_file", "arguments": {"file_path": "test_schedule.py", "content": TESTS}}}
            ],
        },
    ],
}
STEADY = r"""home => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, text = node.data;
    const steady = text.replaceAll(home, "~").replace(/^(\d+ s|now)$/, "2 min");
    if (steady !== text) node.data = steady;
  }
}"""
"""Function that replaces what is different each time: ages, and the folder of the example."""
STEADY_TIMES = r"""() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replace(
    /\b\d\d:\d\d\b/, walk.currentNode.parentElement.closest("time") ? "13:41" : "13:20");
}"""
"""Function that gives what was written the same times each time."""
WRITTEN: "tuple[tuple[str, dict[str, str]], ...]" = (
    ("Take offsets from the harbour", {"schedule.py": CHANGED}),
    ("Test it in summer", {"test_schedule.py": TESTS}),
)
DONE = "Let the board say how late a sailing is"
PROMPTS = ("Do the tests pass?", "Add a test for summer time", "Why is the board an hour late?")


def screen(browser: "Browser", scheme: str, width: int, height: int, *, is_phone: bool = False) -> "BrowserContext":
    """Return a window of a browser."""
    return browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light",
        device_scale_factor=2 if is_phone else 1, is_mobile=is_phone, has_touch=is_phone,
        reduced_motion="reduce", locale="en-GB", timezone_id="Europe/Lisbon",
    )  # fmt: skip


def draw(page: "Page", name: str) -> None:
    """Write what a page shows as ``docs/pictures/workbench-NAME.png``."""
    page.evaluate("document.fonts.ready")
    if page.locator("isthmus-question .actions").count():
        page.wait_for_selector("isthmus-question .actions button:not([aria-disabled]) >> text=Allow once")
    page.evaluate(STEADY, str(Path.home()))
    path = PICTURES / f"workbench-{name}.png"
    page.screenshot(path=path)
    sys.stdout.write(f"{path}\n")


def fix_devices(context: "BrowserContext") -> None:
    """Let a page have the same devices and the same code each time."""

    def answer(route: "Route", value: object) -> None:
        route.fulfill(json=value)

    link = entry_link(PUBLIC_URL, CODE)
    code = {"code": CODE, "seconds": 60, "link": link.url, "qr": None if link.qr is None else link.qr.as_lines()}
    until = DAY + 90 * 86_400
    devices = [
        {"id": "1", "label": "Firefox on Linux", "paired": DAY, "expires": until},
        {"id": "2", "label": "Safari on iPhone", "paired": DAY, "expires": until},
    ]
    context.route("**/ui/api/codes", lambda route: answer(route, code))
    context.route("**/ui/api/devices", lambda route: answer(route, {"devices": devices, "this": "1"}))


def begin_tasks(browser: "Browser", served: Workbench) -> str:
    """Begin the tasks, and return the token of a browser that was let in."""
    with screen(browser, "light", 1280, 800) as context:
        page = served.enter(context)
        page.goto(f"{served.url}ui/new")
        page.get_by_label("Approval").select_option("yolo")
        page.fill("isthmus-new textarea", DONE)
        page.press("isthmus-new textarea", "Enter")
        page.wait_for_selector("isthmus-task .head .st-done")
        for prompt in PROMPTS:
            served.prompt(page, prompt)
            page.wait_for_selector("isthmus-question .actions")
        return str(page.evaluate("localStorage.getItem('isthmus.token')"))


def opened(served: Workbench, context: "BrowserContext", token: str, path: str = "ui/") -> "Page":
    """Return a page of a browser that is let in."""
    context.add_init_script(f"localStorage.setItem('isthmus.token', {json.dumps(token)})")
    page = served.watch(context.new_page())
    page.goto(f"{served.url}{path}")
    page.wait_for_selector("nav")
    return page


def draw_all(browser: "Browser", served: Workbench) -> None:
    """Draw every picture, light and dark."""
    token = begin_tasks(browser, served)
    draw_pages(browser, served, token)
    for scheme in SCHEMES:
        with screen(browser, scheme, 1280, 800) as context:
            fix_devices(context)
            page = opened(served, context, token)
            page.wait_for_selector("isthmus-question .cm-content, isthmus-question .cm-line")
            draw(page, f"inbox-{scheme}")
            task = task_of(page)
            page.goto(f"{served.url}ui/devices")
            page.get_by_role("button", name="Make a code").click()
            page.wait_for_selector("svg.qr")
            page.evaluate("document.querySelector('p.code + p').textContent = 'One use, 60 s left'")
            draw(page, f"pairing-{scheme}")
        with screen(browser, scheme, 1280, 1200) as context:
            page = opened(served, context, token, f"ui/task/{task}")
            page.wait_for_selector("isthmus-question .cm-line")
            page.wait_for_selector("isthmus-task .prose table")
            draw(page, f"task-{scheme}")
        with screen(browser, scheme, 1600, 800) as context:
            page = opened(served, context, token)
            page.wait_for_selector("isthmus-question .cm-content, isthmus-question .cm-line")
            draw(page, f"review-{scheme}")
        with screen(browser, scheme, 390, 844, is_phone=True) as context:
            page = opened(served, context, token)
            page.locator(".item .cover").first.tap()
            page.wait_for_selector("isthmus-question .cm-line")
            draw(page, f"phone-{scheme}")


LOOKS = (("light", 1280, 800, False), ("dark", 1280, 800, False), ("phone", 390, 844, True))
"""Looks of the pages that are not drawn above: name, width and height, and whether it is a phone."""


def draw_pages(browser: "Browser", served: Workbench, token: str) -> None:
    """Draw the pages that show and do not ask, in each look."""
    for look, width, height, is_phone in LOOKS:
        with screen(browser, "dark" if look == "dark" else "light", width, height, is_phone=is_phone) as context:
            page = opened(served, context, token, "ui/history")
            page.wait_for_selector(f"isthmus-history >> text={DONE}")
            draw(page, f"history-{look}")
            page.get_by_role("link", name=f"Changes of the session: {DONE}").click()
            page.locator("isthmus-session-diff .cm-changedLine").first.wait_for()
            draw(page, f"changes-{look}")
            for name, selector in (
                ("new", "textarea"),
                ("tools", ".listing section"),
                ("settings", ".listing section"),
            ):
                page.goto(f"{served.url}ui/{name}")
                page.locator(selector).first.wait_for()
                draw(page, f"{'servers' if name == 'tools' else name}-{look}")


def draw_files(browser: "Browser", project: Path) -> None:
    """Draw the page of a companion that is itself the editor, with selected lines."""
    with companion_program(project, "--open", "schedule.py", command=("companion", "--editor", "web")) as companion:
        with screen(browser, "light", 1280, 800) as context:
            page = context.new_page()
            page.goto(str(companion.ready["page"]))
            page.wait_for_selector("nav")
            token = str(page.evaluate("localStorage.getItem('isthmus.token')"))
        address = str(companion.ready["page"]).partition("ui/")[0]
        for look, width, height, is_phone in LOOKS:
            scheme = "dark" if look == "dark" else "light"
            with screen(browser, scheme, width, height, is_phone=is_phone) as context:
                context.add_init_script(f"localStorage.setItem('isthmus.token', {json.dumps(token)})")
                page = context.new_page()
                page.goto(f"{address}ui/files")
                page.locator(".file .cover", has_text="schedule.py").first.click()
                page.wait_for_selector("isthmus-file .cm-line")
                page.locator("isthmus-file .cm-line", has_text="GRACE = ").first.click()
                page.keyboard.press("Home")
                page.keyboard.press("Shift+End")
                page.wait_for_selector(".file-foot >> text=selected")
                draw(page, f"files-{look}")


async def draw_written(project: Path) -> None:
    """Draw what an agent wrote without asking, with a hunk that is to go back."""
    command = ("companion", "--editor", "web", "--allow-agent-accept")
    with companion_program(project, command=command) as companion:
        user = User(companion)
        async with watching_agent(companion), chromium_beside() as browser:
            for title, files in WRITTEN:
                await user.ask("written_turn", agent="Claude Code", title=title)
                for name, text in files.items():
                    (project / name).write_text(text, "utf-8")
                await user.listed()
            page = await browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
            await page.goto(str(companion.ready["page"]))
            await page.locator("a.cover", has_text="Claude Code wrote").click()
            await page.locator(".both.hunk").nth(2).wait_for()
            await page.locator(".l .c-key").first.wait_for()
            await page.locator(".both.hunk").nth(0).get_by_role("button", name="Keep").click()
            await page.locator(".both.hunk").nth(1).get_by_role("button", name="Undo").click()
            await page.locator(".written .primary:not([aria-disabled=true])").wait_for()
            await page.evaluate(STEADY_TIMES)
            path = PICTURES / "workbench-written-light.png"
            await page.screenshot(path=path)
            sys.stdout.write(f"{path}\n")


def task_of(page: "Page") -> str:
    """Return the id of the task whose question is shown."""
    return str(page.evaluate("document.querySelector('isthmus-question').taskId"))


def main() -> None:
    """Start a server in a folder of its own, and draw its page."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as name:
        home = Path(name)
        project = home / "harbour"
        project.mkdir()
        os.environ.update({"HOME": name, "XDG_RUNTIME_DIR": name, "TMPDIR": name})
        (project / "schedule.py").write_text(SCHEDULE, "utf-8")
        (project / "board.py").write_text(BOARD, "utf-8")
        with chromium() as browser:
            with workbench(home, project, json.dumps(SCRIPT)) as served:
                draw_all(browser, served)
            draw_files(browser, project)
        (project / "board.py").write_text(BOARD, "utf-8")
        (project / "schedule.py").write_text(SCHEDULE, "utf-8")
        asyncio.run(draw_written(project))


if __name__ == "__main__":
    main()
