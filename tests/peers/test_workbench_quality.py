"""The quality of the workbench in a real browser: size, long tasks, sleep, queue, words of refusal."""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from support.long_tasks import huge_events, long_task, seed
from support.page_measures import Work, heap_bytes, received_bytes
from support.workbench import Workbench, answer_by, show_new, until_answers_count, workbench

FIRST_PAINT_BYTES = 200 * 1024
HEAP_BYTES = 60 * 1024 * 1024
EVENTS, FEW_EVENTS = 16_000, 1_600
ASLEEP_SECONDS = 3.2
STEPS = 30
WRITE = {"content": "A line.\n", "instruction": "Write it"}
SLOW = [step for number in range(160) for step in ({"text": f"word{number} "}, {"delay": 0.05})]
LONG_WORDS = 100
LONG = [step for number in range(LONG_WORDS) for step in ({"text": f"word{number} "}, {"delay": 0.05})]
"""Words that still come when the page was opened slowly."""
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {
                "prompt": r"\Awrite (?P<name>\w+)",
                "replies": [
                    {"call": {"name": "write_file", "arguments": {"file_path": "{{name}}.txt", **WRITE}}},
                    {"text": "It is over: {{result}}"},
                ],
            },
            {"prompt": r"\AI rejected", "replies": [{"text": "I understood: {{prompt}}"}]},
            {
                "prompt": r"\Adelegate",
                "replies": [
                    {
                        "call": {
                            "name": "invoke_agent",
                            "arguments": {"agent_name": "generalist", "prompt": "small part"},
                        }
                    },
                    {"text": "The generalist is done."},
                ],
            },
            {"prompt": r"\Aslow", "replies": [{"steps": SLOW}]},
            {"prompt": r"\Along", "replies": [{"steps": LONG}]},
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
    }
)  # a YAML document, too


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    folder, workspace = tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("workspace")
    seed(folder / "data", workspace, "long", long_task(EVENTS), "work for hours")
    seed(folder / "data", workspace, "shorter", long_task(FEW_EVENTS), "work for an hour")
    seed(folder / "data", workspace, "huge", huge_events(10_000_000), "show huge things")
    with workbench(folder, workspace, SCRIPT) as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: Workbench) -> Generator[Page]:
    with served.let_in(browser) as context:
        yield served.watch(context.new_page())


@contextmanager
def stopped_renderers() -> Generator[None]:
    """Stop all pages as the system does when it sleeps: nothing of them runs, and what is sent to them waits."""
    found: list[psutil.Process] = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            if "--type=renderer" in " ".join(one.cmdline()):
                found.append(one)
    for one in found:
        one.suspend()
    try:
        yield
    finally:
        for one in found:
            one.resume()


def test_the_first_paint_needs_few_bytes_and_no_editor(page: Page, served: Workbench) -> None:
    sizes = received_bytes(page)
    page.goto(f"{served.url}ui/history")
    page.wait_for_selector("isthmus-history .line")
    assert 10_000 < sum(sizes) < FIRST_PAINT_BYTES
    # A task has diffs, but none is open: the editor is not loaded.
    page.locator(".nav a.task").first.click()
    page.wait_for_selector("isthmus-task .it")
    loaded = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [name for name in loaded if "/assets/" in name]
    assert not [name for name in loaded if "diff-editor" in name]


def seconds_of_scrolling(page: Page, work: Work) -> float:
    """Scroll through a whole task from its end, by as many screens however long it is; return the page's work in s."""
    before = work.seconds()
    page.evaluate(
        """async steps => {
      const list = document.querySelector('isthmus-items');
      for (let step = 0; step < steps; step += 1) {
        list.scrollTop = list.scrollHeight * (1 - step / steps);
        await new Promise(requestAnimationFrame);
      }
      list.scrollTop = 0;
    }""",
        STEPS,
    )
    return work.seconds() - before


@pytest.mark.extended
def test_a_task_of_16000_events_is_light_and_scrolls(page: Page, served: Workbench) -> None:
    work = Work(page)
    page.goto(f"{served.url}ui/task/long")
    page.wait_for_selector(f"text=Step {EVENTS // 16 - 1} is over.")
    page.wait_for_selector("isthmus-task .head .st-done")
    assert page.locator("isthmus-task .it").count() < 100
    expect(page.locator("isthmus-aside")).to_contain_text("module_39.py")
    heap = heap_bytes(page)
    assert heap < HEAP_BYTES, heap

    long = seconds_of_scrolling(page, work)
    expect(page.locator("isthmus-task .said").first).to_have_text("work for hours")
    assert heap_bytes(page) < HEAP_BYTES
    assert page.locator("isthmus-task .it").count() < 100

    page.goto(f"{served.url}ui/task/shorter")
    page.wait_for_selector(f"text=Step {FEW_EVENTS // 16 - 1} is over.")
    page.wait_for_selector("isthmus-task .head .st-done")
    assert long < seconds_of_scrolling(page, work) * 3


@pytest.mark.extended
def test_what_is_read_stays_in_its_place(page: Page, served: Workbench) -> None:
    page.goto(f"{served.url}ui/task/long")
    page.wait_for_selector(f"text=Step {EVENTS // 16 - 1} is over.")
    page.evaluate("document.querySelector('isthmus-items').scrollTop = 40000")
    # Steps of a screen, so that most of them draw items whose heights are not known; each of three frames is looked at.
    moved = page.evaluate("""async () => {
      const list = document.querySelector('isthmus-items'), top = list.getBoundingClientRect().top;
      const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
      await frame(); await frame();
      let worst = 0;
      for (let step = 0; step < 40; step += 1) {
        const seen = [...list.querySelectorAll('.it')].find(item => item.getBoundingClientRect().bottom > top + 5);
        const before = seen.getBoundingClientRect().top, distance = step % 2 ? 120 : list.clientHeight - 100;
        list.scrollTop -= distance;
        for (let shown = 0; shown < 3; shown += 1) {
          await frame();
          if (!list.contains(seen)) break;
          worst = Math.max(worst, Math.abs(seen.getBoundingClientRect().top - before - distance));
        }
      }
      return worst;
    }""")
    assert moved <= 2  # pixels
    # A result that is not kept any more is fetched again when it is opened.
    page.evaluate("document.querySelector('isthmus-items').scrollTop = 0")
    page.locator("isthmus-task .call", has_text="make step-0").get_by_role("button", name="Output").click()
    expect(page.locator("isthmus-task .out").first).to_contain_text("line 49 of step 0")


def test_huge_lines_do_not_hang_the_page(page: Page, served: Workbench) -> None:
    page.goto(f"{served.url}ui/task/huge")
    page.wait_for_selector("text=The huge part is over.")
    page.wait_for_selector("isthmus-task .head .st-done")
    assert (
        page.evaluate(
            "new Promise(done => { const at = performance.now(); setTimeout(() => done(performance.now() - at)); })"
        )
        < 1000
    )
    page.locator("isthmus-task .call", has_text="echo").get_by_role("button", name="Output").click()
    expect(page.locator("isthmus-task isthmus-output")).to_contain_text("characters above are not shown")
    page.evaluate("document.querySelector('isthmus-items').scrollTop = 0")
    expect(page.locator("isthmus-task .said")).to_have_text("show huge things")


def test_an_idle_page_asks_nothing_and_shows_changes_at_once(page: Page, served: Workbench) -> None:
    page.goto(f"{served.url}ui/")
    page.wait_for_selector("isthmus-inbox")
    page.wait_for_load_state("load")
    page.wait_for_timeout(500)  # delay: what the page asks for at its start is asked by then
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.wait_for_timeout(1500)  # delay: that nothing is asked can be seen only over a time
    assert requests == []
    served.begin(page, "write changes")
    expect(page.locator(".item", has_text="changes.txt")).to_be_visible(timeout=10_000)
    expect(page.locator("#said")).to_contain_text("1 wait")
    until_answers_count(page)
    answer_by(page, "N")
    expect(page.locator(".item.done")).to_be_visible()


def test_the_focus_goes_to_the_next_question(page: Page, served: Workbench) -> None:
    page.goto(f"{served.url}ui/")
    served.begin(page, "write one")
    expect(page.locator(".item")).to_have_count(1)
    served.begin(page, "write two")
    show_new(page)
    expect(page.locator(".item")).to_have_count(2)
    page.locator("isthmus-question .primary").focus()
    until_answers_count(page)
    page.keyboard.press("Enter")
    expect(page.locator("isthmus-question h2")).to_contain_text("two.txt")
    expect(page.locator("isthmus-question h2")).to_be_focused()
    expect(page.locator(".item.done")).to_have_count(1)
    until_answers_count(page)
    answer_by(page, "N")
    expect(page.locator(".item.done")).to_have_count(2)


def test_a_call_is_rejected_with_words(page: Page, served: Workbench) -> None:
    task = served.begin(page, "write refused")
    page.goto(f"{served.url}ui/task/{task}")
    page.wait_for_selector("isthmus-question .actions")
    until_answers_count(page)
    page.keyboard.press("n")
    page.keyboard.type("use notes.md")
    page.keyboard.press("Enter")
    expect(page.locator("isthmus-task .said").last).to_have_text("I rejected the call of write_file. use notes.md")
    expect(page.locator("isthmus-task .prose")).to_contain_text("I understood: I rejected the call")
    expect(page.locator("isthmus-question")).to_have_count(0)
    assert not (served.workspace / "refused.txt").exists()


def test_a_message_waits_until_the_task_has_ended(page: Page, served: Workbench) -> None:
    task = served.begin(page, "slow")
    page.goto(f"{served.url}ui/task/{task}")
    page.wait_for_selector("text=word2 ")
    for text in ("this one is removed", "this one is sent"):
        page.fill("isthmus-prompt textarea", text)
        page.press("isthmus-prompt textarea", "Enter")
    expect(page.locator("isthmus-queued li")).to_have_count(2)
    page.locator("isthmus-queued li", has_text="removed").get_by_role("button", name="Remove:").click()
    page.reload()
    expect(page.locator("isthmus-queued li")).to_have_count(1)
    expect(page.locator("isthmus-task .prose").last).to_have_text("You said: this one is sent")
    expect(page.locator("isthmus-task .said")).to_have_text(["slow", "this one is sent"])
    expect(page.locator("isthmus-queued")).to_have_count(0)


def test_subagents_and_the_model_are_beside_the_task(page: Page, served: Workbench) -> None:
    task = served.begin(page, "delegate")
    page.goto(f"{served.url}ui/task/{task}")
    page.wait_for_selector("text=The generalist is done.")
    aside = page.locator("isthmus-aside")
    expect(aside.locator("section", has_text="Subagents")).to_contain_text("small part")
    expect(aside.locator("section", has_text="Subagents")).to_contain_text("Done")
    expect(aside).to_contain_text("tokens")


@pytest.mark.extended
def test_a_page_that_was_frozen_is_whole(page: Page, served: Workbench) -> None:
    task = served.begin(page, "long sleep")
    page.goto(f"{served.url}ui/task/{task}")
    page.wait_for_selector("text=word2 ")
    with stopped_renderers():
        time.sleep(ASLEEP_SECONDS)  # delay: the renderers stand still for this time
    expect(page.locator("isthmus-task .banner.back")).to_contain_text("events fetched")
    page.wait_for_selector("isthmus-task .head .st-done")
    page.wait_for_selector(f"text=word{LONG_WORDS - 1}")
    words = " ".join(page.locator("isthmus-task .prose").all_inner_texts()).split()
    assert words == [f"word{number}" for number in range(LONG_WORDS)]
