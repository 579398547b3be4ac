"""What agents wrote without a review, kept and undone in the page of a real companion, in a real Chromium."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from support.isthmus_program import companion_program
from support.workbench import DESKTOP, SECONDS, answer_beside
from support.written_changes import User, watching_agent

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OLD = "".join(f"line{number}\n" for number in range(1, 31))
NEW = OLD.replace("line2\n", "two\n").replace("line15\n", "").replace("line28\n", "line28\nmore\n")
"""The text with a changed, a removed and an added line."""


@dataclass
class WrittenPage:
    """A companion's page, its user on the control channel, and a workspace in which an agent writes."""

    page: Page
    user: User
    workspace: Path

    @property
    def hunks(self) -> Locator:
        """The hunks of the turn that is shown."""
        return self.page.locator(".both.hunk")

    async def written(self, title: str, **files: str) -> None:
        """Write files ``NAME.py`` in a turn of its own."""
        await self.user.ask("written_turn", agent="Claude Code", title=title)
        for name, text in files.items():
            (self.workspace / f"{name}.py").write_text(text, "utf-8")
        await self.user.listed()

    async def opened(self) -> None:
        """Open the view from its entry in the inbox."""
        await self.page.locator("a.cover", has_text="Claude Code wrote").click()
        await self.hunks.first.wait_for()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)

    async def answers(self, key: str) -> None:
        """Press a key that sends something, once what is shown may be answered."""
        await expect(self.page.locator(".written .primary")).to_be_enabled()
        await answer_beside(self.page, key)

    def text(self, name: str) -> str:
        return (self.workspace / f"{name}.py").read_text("utf-8")


@pytest.fixture
async def written(workspace: Path, browser_beside: Browser) -> AsyncGenerator[WrittenPage]:
    (workspace / "a.py").write_text(OLD, "utf-8")
    # The browser is started by the process that asks, as an agent could do.
    command = ("companion", "--editor", "web", "--allow-agent-accept")
    with companion_program(workspace, command=command) as companion:
        page = await browser_beside.new_page(viewport={"width": DESKTOP[0], "height": DESKTOP[1]}, has_touch=True)
        try:
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda line: problems.append(line.text) if "Security Policy" in line.text else None)
            page.set_default_timeout(1000 * SECONDS)
            await page.goto(companion.ready["page"])
            async with watching_agent(companion):
                yield WrittenPage(page, User(companion), workspace)
            assert problems == []
        finally:
            await page.context.close()


async def test_the_inbox_says_what_was_written_and_hunks_are_undone_and_kept(written: WrittenPage) -> None:
    page = written.page
    await written.written("Use numbers", a=NEW)
    await written.written("Add another", b="new\n")
    await expect(page.locator("a.cover")).to_contain_text("Claude Code wrote 2 files since")
    await expect(page).to_have_title("Inbox · Isthmus")  # nothing waits for an answer
    await written.opened()
    await written.press("J")
    await expect(page.locator(".turns .item.on")).to_contain_text("Add another")
    await written.press("K")
    await expect(written.hunks).to_have_count(3)
    await expect(page.locator(".turns .item.on")).to_contain_text("Use numbers")
    await written.press("j", "j", "x")
    await expect(page.locator(".head", has_text="Turn 1 of 2 · hunk 2 of 3")).to_be_visible()
    await expect(written.hunks.nth(1)).to_have_accessible_name("Hunk 2 of 3, goes back")
    await expect(written.hunks.nth(1).locator(".l.w")).to_contain_text("line15")
    assert written.text("a") == NEW  # nothing is written before it is sent
    await written.press("u")
    await expect(written.hunks.nth(1)).to_have_accessible_name("Hunk 2 of 3")
    await written.press("x", "j", "a")
    await expect(page.locator(".turns .item.on")).to_contain_text("2 of 3 decided")
    await page.get_by_role("button", name="Only these 2").click()
    await expect(page.locator(".turns .item.on")).to_contain_text("1 of 2 decided")
    await expect(written.hunks.nth(1)).to_have_accessible_name("Hunk 2 of 2, went back")
    assert written.text("a") == NEW.replace("line14\n", "line14\nline15\n")
    await written.answers("Control+Enter")
    await expect(page.locator(".empty.big")).to_contain_text("Nothing was written since")
    assert await written.user.listed() == {}
    await written.press("Escape")
    await expect(page.locator("isthmus-inbox")).to_contain_text("Nothing waits for you.")


async def test_an_undo_is_taken_back_by_key_and_from_the_list(written: WrittenPage) -> None:
    page = written.page
    await written.written("Use numbers", a=NEW, b="new\n")
    await written.opened()
    await page.locator("isthmus-written-file", has_text="a.py").get_by_role("button", name="Undo file").click()
    await page.get_by_role("button", name="Only these 3").click()
    await expect(page.locator(".turns")).to_contain_text("Undone")
    assert written.text("a") == OLD
    await page.locator(".both.hunk.back").first.focus()
    await written.answers("u")
    await expect(page.locator(".both.hunk.back")).to_have_count(0)
    assert written.text("a") == NEW
    await page.get_by_role("button", name="Undo the turn\u2026").click()
    await expect(page.locator(".ask-undo")).to_contain_text("2 files of turn 1 written as before it")
    await written.press("Escape")
    await expect(page.locator(".ask-undo")).to_have_count(0)
    await page.get_by_role("button", name="Undo the turn\u2026").click()
    await page.get_by_role("button", name="Undo the turn", exact=True).click()
    await expect(page.locator(".both.hunk.back")).to_have_count(4)
    assert (written.text("a"), (written.workspace / "b.py").exists()) == (OLD, False)
    await page.locator(".undone-row").first.get_by_role("button", name="Take back").click()
    await expect(page.locator(".both.hunk.back")).to_have_count(0)
    assert (written.text("a"), written.text("b")) == (NEW, "new\n")


async def test_a_held_key_and_letters_of_a_word_decide_nothing_twice(written: WrittenPage) -> None:
    page, sent = written.page, list[str]()
    await written.written("First", a=NEW)
    await written.written("Second", b="new\n")
    page.on("request", lambda request: sent.append(str(request.post_data)) if request.method == "POST" else None)
    await written.opened()
    await written.answers("ArrowLeft")
    for key in ("A", "A", "A"):
        await page.keyboard.down(key)
    await page.keyboard.up("A")
    await expect(page.locator(".turns .item")).to_have_count(1)
    await page.keyboard.type("seA")
    await written.hunks.first.focus()
    for _ in range(3):
        await page.keyboard.down("x")
    await page.keyboard.up("x")
    await expect(page.locator(".both.hunk.back")).to_have_count(1)
    assert len(sent) == 1, sent
    assert list(await written.user.listed()) == ["b.py"]


async def test_what_was_written_since_is_not_kept_with_the_rest(written: WrittenPage) -> None:
    page = written.page
    await written.written("First", a=NEW)
    await written.opened()
    await written.press("j", "x")
    held: asyncio.Queue[Route] = asyncio.Queue()

    async def hold(route: Route) -> None:
        await (held.put(route) if route.request.method == "POST" and held.empty() else route.continue_())

    await page.route("**/api/written/*", hold)
    await written.answers("Control+Enter")
    route = await asyncio.wait_for(held.get(), 30)
    await written.written("Second", b="new\n")
    await route.continue_()
    await expect(page.get_by_role("alert")).to_contain_text("look again")
    await expect(page.locator(".turns .item")).to_have_count(2)
    assert written.text("a") == NEW
    assert await written.user.listed() == {"a.py": [1], "b.py": [2]}


ANSWER_AT_ONCE = """() => {
  const seen = new MutationObserver(() => {
    if (document.querySelectorAll(".turns .item").length < 2) return;
    seen.disconnect();
    dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", ctrlKey: true, cancelable: true}));
    document.querySelector(".written .primary").click();
  });
  seen.observe(document.body, {childList: true, subtree: true});
}"""
"""Function that sends a decision in the moment in which a second turn is shown."""


async def test_what_was_not_read_is_not_decided_about(written: WrittenPage) -> None:
    page, sent = written.page, list[str]()
    await written.written("First", a=NEW)
    await written.opened()
    await expect(page.get_by_role("button", name="Keep all")).to_be_enabled()
    page.on("request", lambda request: sent.append(str(request.post_data)) if request.method == "POST" else None)
    await page.evaluate(ANSWER_AT_ONCE)
    await written.written("Second", b="new\n")
    await expect(page.locator(".turns .item")).to_have_count(2)
    await expect(page.get_by_role("button", name="Keep all")).to_be_enabled()
    assert sent == []


async def test_a_button_that_was_pressed_keeps_the_focus(written: WrittenPage) -> None:
    page = written.page
    await written.written("First", a=NEW)
    await written.opened()
    await written.press("j", "x")
    await page.get_by_role("button", name="Only these 1").click()
    taking = written.hunks.first.get_by_role("button", name="Take back, Hunk 1 of 3")
    await taking.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".both.hunk.back")).to_have_count(0)
    await expect(written.hunks.first.get_by_role("button", name="Undo, Hunk 1 of 3")).to_be_focused()
    await written.press("j")
    await expect(written.hunks.nth(1)).to_be_focused()


async def test_a_later_turn_is_named_and_what_the_user_changed_is_not_undone(written: WrittenPage) -> None:
    page = written.page
    await written.written("First", a=NEW)
    await written.written("Second", a=NEW.replace("two\n", "twice\n"))
    await written.opened()
    await expect(page.locator(".fl .note")).to_have_text("hunk 1 was changed again in turn 2: undo takes both")
    await written.hunks.nth(2).focus()
    await written.press("x")
    await expect(page.get_by_role("button", name="Undo 1, keep the rest")).to_be_visible()
    mine = written.text("a").replace("more\n", "mine\n")
    (written.workspace / "a.py").write_text(mine, "utf-8")
    await written.user.ask("written_saved", path=str(written.workspace / "a.py"))
    # The hunk is not an agent's any more: its mark goes with it.
    await expect(written.hunks).to_have_count(2)
    await expect(page.get_by_role("button", name="Keep all")).to_be_visible()
    assert written.text("a") == mine


async def test_a_refusal_is_shown_as_the_companion_says_it(written: WrittenPage) -> None:
    page = written.page
    await written.written("First", a=NEW)
    await written.opened()
    text = "You changed this hunk since; undo is off. Nothing was written."

    async def refuse(route: Route) -> None:
        if route.request.method == "POST":
            await route.fulfill(status=403, json={"error": text, "code": "COMPANION_REFUSED"})
        else:
            await route.continue_()

    await page.route("**/api/written/*", refuse)
    await written.press("j", "x")
    await written.answers("Control+Enter")
    await expect(page.get_by_role("alert")).to_have_text(f"The companion did not do this: {text}")
    await expect(written.hunks.first).to_have_accessible_name("Hunk 1 of 3, goes back")


async def test_without_a_connection_nothing_can_be_sent_and_then_it_can(written: WrittenPage) -> None:
    page = written.page
    await written.written("First", a=NEW)
    await written.opened()
    await page.context.set_offline(True)
    await expect(page.locator(".banner")).to_contain_text("No connection")
    await expect(page.get_by_role("button", name="Keep all")).to_be_disabled()
    await expect(written.hunks.first.get_by_role("button", name="Undo, Hunk 1 of 3")).to_be_disabled()
    await written.written("Second", b="new\n")
    await page.context.set_offline(False)
    await expect(page.locator(".banner")).to_have_count(0)
    await expect(page.locator(".turns .item")).to_have_count(2)
    await page.get_by_role("button", name="Keep all").click()
    await expect(page.locator(".empty.big")).to_contain_text("Nothing was written since")


@pytest.mark.extended
async def test_what_is_no_plain_change_of_lines_is_said(written: WrittenPage) -> None:
    page, folder = written.page, written.workspace
    (folder / "ends.txt").write_bytes(b"one\r\ntwo\r\n")
    (folder / "gone.txt").write_text("old\n", "utf-8")
    (folder / "moved.txt").write_text("same\n", "utf-8")
    (folder / "tool").write_text("echo\n", "utf-8")
    (folder / "tool").chmod(0o644)
    await written.user.listed()
    for name in ("ends.txt", "gone.txt", "moved.txt", "tool"):
        await written.user.ask("written_saved", path=str(folder / name))
    await written.user.ask("written_turn", agent="Claude Code", title="Many kinds")
    (folder / "ends.txt").write_bytes(b"one\ntwo\r\nthree")
    (folder / "gone.txt").unlink()
    (folder / "moved.txt").rename(folder / "other.txt")
    (folder / "tool").chmod(0o755)
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x00\x1a")
    (folder / "long.py").write_text("".join(f"number = {at}  # \u202e\n" for at in range(1000)), "utf-8")
    (folder / ".env").write_text("SECRET=1\n", "utf-8")
    await written.user.listed()
    await written.opened()

    def file(name: str) -> Locator:
        return page.locator(f"isthmus-written-file[data-path$='/{name}']")

    await expect(file("ends.txt").locator(".l.d").first).to_contain_text("one\u240d")
    await expect(file("ends.txt")).to_contain_text("No newline at the end of the file")
    await expect(file("gone.txt").locator(".note")).to_have_text("deleted; undo brings it back")
    await expect(file("other.txt").locator(".note")).to_contain_text("renamed from")
    await expect(file("tool")).to_contain_text("permissions 755, before 644")
    await expect(file("logo.png")).to_contain_text("Not text. It can be kept or undone as a whole.")
    await expect(file("long.py").locator(".l.a")).to_have_count(400)
    await expect(file("long.py").locator(".l.a").first).to_contain_text("\\u{202e}")
    await file("long.py").get_by_role("button", name="Show 600 more lines").click()
    await expect(file("long.py").locator(".l.a")).to_have_count(800)
    await expect(file(".env").locator(".note")).to_contain_text("cannot be undone here")
    await expect(file(".env").get_by_role("button", name="Undo")).to_be_disabled()
    assert "SECRET" not in await page.locator(".written").inner_text()
    await file("tool").get_by_role("button", name="Undo").click()
    await page.get_by_role("button", name="Only these 1").click()
    await expect(file("tool").locator(".both.hunk")).to_have_accessible_name("Hunk 1 of 1, went back")
    assert (folder / "tool").stat().st_mode & 0o777 == 0o644


@pytest.mark.extended
async def test_it_fits_a_phone_and_is_clean_for_axe(written: WrittenPage) -> None:
    page = written.page
    await written.written("First", a=NEW, b="new\n")
    await written.opened()
    await written.press("j", "x")
    await page.evaluate(AXE.read_text("utf-8"))
    found: list[str] = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for width, height in (DESKTOP, (1100, 800), (320, 640)):
            await page.set_viewport_size({"width": width, "height": height})
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            result = await page.evaluate("rules => axe.run({ runOnly: rules, preload: false })", RULES)
            found += [f"{width} {scheme} {one['id']}: {one['nodes'][0]['html'][:150]}" for one in result["violations"]]
    assert found == []
    # On a phone the turns are a list of their own; a hunk has its buttons above it.
    await expect(page.locator(".turns")).to_be_hidden()
    second = written.hunks.nth(1)
    await second.get_by_role("button", name="Keep, Hunk 2 of 3").tap()
    await expect(second).to_have_accessible_name("Hunk 2 of 3, kept")
    box = await second.get_by_role("button", name="Undo").bounding_box()
    assert box is not None
    assert (box["width"], box["height"]) == (44, 44)
    await written.press("Escape")
    await page.locator(".turns .item").first.click()
    await expect(second).to_be_visible()
