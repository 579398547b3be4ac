"""Large changes in the workbench, in a real browser: each line can be reached, and nothing unseen is allowed."""

import itertools
import json
import random
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.extended import first_of
from support.waiting import eventually
from support.workbench import Workbench, answer_by, until_answers_count, workbench

NUMBERS = itertools.count(1)
LONG_COMMAND = "".join(f"echo line {number}\n" for number in range(500)) + "echo the last line"
NEW_LINES = [f"line {number} of the new file\n" for number in range(600)]


def notebook(name: str) -> str:
    """Return a notebook of five cells with 100 lines each."""
    sources = [[f"{name} = {cell * 100 + line}\n" for line in range(100)] for cell in range(5)]
    cells: list[dict[str, Any]] = [
        {"cell_type": "raw", "id": f"c{number}", "metadata": {}, "source": source}
        for number, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {
                "prompt": r"\Areplace in (?P<name>\w+)",
                "replies": [
                    {
                        "call": {
                            "name": "replace",
                            "arguments": {
                                "file_path": "{{name}}.txt",
                                "old_string": "the needle",
                                "new_string": "another needle",
                            },
                        }
                    },
                    {"text": "It is over."},
                ],
            },
            {
                "prompt": r"\Acreate (?P<name>\w+)",
                "replies": [
                    {
                        "call": {
                            "name": "write_file",
                            "arguments": {"file_path": "{{name}}.txt", "content": "".join(NEW_LINES)},
                        }
                    },
                    {"text": "It is over."},
                ],
            },
            {
                "prompt": r"\Acells",
                "replies": [
                    {
                        "call": {
                            "name": "write_file",
                            "arguments": {"file_path": "large.ipynb", "content": notebook("new")},
                        }
                    },
                    {"text": "It is over."},
                ],
            },
            {
                "prompt": r"\Arun",
                "replies": [
                    {"call": {"name": "run_shell_command", "arguments": {"command": LONG_COMMAND}}},
                    {"text": "It is over."},
                ],
            },
        ],
    }
)  # a YAML document, too

MOUNT = """
async ([old, now, width]) => {
  await customElements.whenDefined("isthmus-diff");
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  globalThis.frame = frame;
  const box = document.createElement("div"), diff = document.createElement("isthmus-diff");
  Object.assign(box.style, {
    position: "fixed", inset: "0 auto auto 0", width: width + "px", height: "600px", overflow: "auto", zIndex: 9,
    background: "white",
  });
  Object.assign(diff, { oldText: old ?? undefined, newText: now, path: "a.txt", isAwaited: true, isOpen: true });
  const shown = new Promise((done) => diff.addEventListener("shown", done, { once: true }));
  box.append(diff);
  document.body.append(box);
  await shown;
  await frame();
  globalThis.mounted = { box, diff };
}
"""
"""Shows a change in a box of 600 pixels that scrolls."""
READ_ALL = """
async () => {
  const { box, diff } = mounted;
  const root = diff.shadowRoot, added = new Set(), removed = new Set(), marks = new Set();
  const text = (node) => {
    const copy = node.cloneNode(true);
    for (const said of copy.querySelectorAll(".said, .cm-said, .number, .sign")) said.remove();
    return copy.textContent;
  };
  const limit = box.getBoundingClientRect();
  const isOn = (node) => {
    const { top, bottom } = node.getBoundingClientRect();
    return bottom > limit.top && top < limit.bottom;
  };
  const collect = () => {
    const on = (selector) => [...root.querySelectorAll(selector)].filter(isOn);
    for (const node of on(".row.added, .cm-merge-b .cm-changedLine, .cm-line.cm-changedLine")) {
      if (!node.closest(".cm-merge-a")) added.add(text(node));
    }
    for (const node of on(".row.removed, .cm-deletedLine, .cm-merge-a .cm-changedLine")) removed.add(text(node));
    for (const node of on("mark, .cm-changedText")) marks.add(node.textContent);
  };
  let steps = 0;
  const begun = diff.unseen;
  await frame();
  collect();
  for (; diff.unseen && steps < 5000; steps += 1) {
    diff.goUnseen();
    await frame();
    await frame();
    collect();
  }
  const left = diff.unseen;
  for (box.scrollTop = 0; ; box.scrollTop += 500) {
    await frame();
    collect();
    if (box.scrollTop + box.clientHeight >= box.scrollHeight - 2) break;
  }
  const notes = [...root.querySelectorAll(".fold, .note, .cm-unfold")].map((node) => node.textContent);
  const isLong = root.querySelector(".long") !== null;
  box.remove();
  const lists = { added: [...added], removed: [...removed], marks: [...marks] };
  return { ...lists, notes, steps, isLong, begun: begun ?? null, left: left ?? null };
}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workbench]:
    with workbench(tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("workspace"), SCRIPT) as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: Workbench) -> Generator[Page]:
    """Return a page of the shared server, whose tasks before were cancelled."""
    with served.let_in(browser) as context:
        yield served.watched(context)
    served.cancel_tasks()


def ask(page: Page, served: Workbench, prompt: str) -> None:
    """Let a prompt wait for an answer in the inbox, which is shown."""
    page.goto(f"{served.url}ui/")
    served.begin(page, prompt)
    expect(page.locator("isthmus-question article")).to_be_visible()


def name() -> str:
    return f"file{next(NUMBERS)}"


def text_of(size: int, seed: int) -> list[str]:
    """Return lines of about this size in all, no two of them alike."""
    chance = random.Random(seed)  # noqa: S311 - a seed repeats the text
    lines, left = list[str](), size
    while left > 0:
        line = f"{len(lines)} " + "x" * chance.choice((0, 10, 40, 70, 70, 120)) + "\n"
        lines.append(line)
        left -= len(line)
    return lines


def read_all(page: Page, old: str | None, new: str, width: int = 800) -> dict[str, Any]:
    """Show a change in the page, scroll through all of it, and return what was on the screen."""
    mount(page, old, new, width)
    return page.evaluate(READ_ALL)


def mount(page: Page, old: str | None, new: str, width: int = 800) -> None:
    page.evaluate(MOUNT, [old, new, width])


def unseen(page: Page, action: str = "") -> dict[str, int] | None:
    """Do something with the change that is shown, and return what of it was not on the screen yet."""
    body = f"const {{ box, diff }} = mounted; {action}; await frame(); await frame(); return diff.unseen ?? null"
    return page.evaluate(f"async () => {{ {body} }}")


def go_on(page: Page) -> dict[str, int] | None:
    """Go on with what was not on the screen, until all of it was or nothing more comes; return what is left."""
    step = "for (let at = 0; at < 300 && diff.unseen; at += 1) { diff.goUnseen(); await frame(); await frame(); }"
    return unseen(page, step)


@pytest.mark.parametrize(
    ("size", "place", "width"),
    first_of(
        [
            (1_000, "first", 800),
            (199_000, "last", 800),
            (420_000, "first", 1200),
            (5_000_000, "middle", 800),
            (1_000, "last", 1200),
            (20_000, "middle", 1200),
            (199_000, "first", 1200),
            (420_000, "last", 800),
            (1_000_000, "middle", 800),
            (5_000_000, "last", 1200),
        ],
        count=4,
        are_rows=True,
    ),
)
def test_one_changed_line_anywhere_is_shown_and_nothing_else(page: Page, size: int, place: str, width: int) -> None:
    lines = text_of(size // 2, size)
    at = {"first": 0, "middle": len(lines) // 3, "last": len(lines) - 1}[place]
    changed = [*lines[:at], "the changed line\n", *lines[at + 1 :]]
    found = read_all(page, "".join(lines), "".join(changed), width)
    assert (found["added"], found["removed"]) == (["the changed line"], [lines[at].rstrip("\n")])
    assert found["left"] is None
    assert len(lines) < 20 or any(note for note in found["notes"])  # what is folded away is said


@pytest.mark.extended
@pytest.mark.parametrize("seed", first_of(range(4)))
def test_all_changed_lines_are_shown_wherever_they_are(page: Page, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a seed repeats the texts
    old = text_of(chance.choice((3_000, 60_000, 150_000, 600_000)), seed)
    new = list(old)
    for number in range(chance.choice((1, 5, 40, 100))):
        at = chance.randrange(len(new))
        match chance.choice(("insert", "remove", "replace", "block")):
            case "insert":
                new.insert(at, f"new {number}\n")
            case "remove":
                del new[at]
            case "replace":
                new[at] = f"changed {number}\n"
            case _:
                new[at : at + 30] = [f"block {number} line {line}\n" for line in range(chance.randrange(60))]
        new = new or ["\n"]
    found = read_all(page, "".join(old), "".join(new))
    assert set(found["removed"]) >= {line.rstrip("\n") for line in set(old) - set(new)}
    assert set(found["added"]) >= {line.rstrip("\n") for line in set(new) - set(old)}
    kept = set(old) & set(new)
    assert [line for line in old if line in kept] == [line for line in new if line in kept]
    assert found["left"] is None


@pytest.mark.extended
def test_a_change_in_a_line_of_any_length_is_marked_and_the_rest_is_said(page: Page) -> None:
    for length in (1_500, 3_000, 19_000, 30_000, 2_000_000):
        line = "".join(f"{number}," for number in range(length // 5))
        at = len(line) // 2
        found = read_all(page, f"{line}\n", f"{line[:at]}THE CHANGE{line[at:]}\n")
        assert any("THE CHANGE" in mark for mark in found["marks"]), length
        assert found["left"] is None
        if found["isLong"]:
            assert any("unchanged characters" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("one\ntwo\n", "one\r\ntwo\r\n", "one␍"),
        ("one\ntwo\n", "one\ntwo", "two"),
        ("one\0\n", "two\0\n", "two␀"),
        ("one\n" * 300_000, "one\n" * 300_000 + "one", "one"),
        ("a\r\nb\nc\n", "a\nb\r\nc\n", "b␍"),
        ("# c\rrm -rf ~\nx\n", "# c\nrm -rf ~\nx\n", "# c␍rm -rf ~"),
        (None, "# c\rrm -rf ~\n", "# c␍rm -rf ~"),
    ],
    ids=["ends", "last newline", "NUL", "last newline of a large file", "other ends", "a lone CR", "a new lone CR"],
)
def test_what_an_editor_does_not_show_is_shown(page: Page, old: str | None, new: str, shown: str) -> None:
    found = read_all(page, old, new)
    assert any(shown in text.replace("\0", "␀") for text in [*found["added"], *found["marks"], *found["removed"]]), (
        found
    )
    assert found["left"] is None


def test_letters_of_another_alphabet_are_marked_in_a_large_change(page: Page) -> None:
    lines = text_of(450_000, 5)
    found = read_all(page, "".join([*lines, "import paypal\n"]), "".join([*lines, "import p\u0430ypal\n"]))
    assert found["isLong"]
    assert found["added"] == [r"import p\u{430}ypal"]


SIGNS_OF = """() => {
  const root = mounted.diff.shadowRoot, texts = (selector) => [...root.querySelectorAll(selector)].map(
    (node) => node.textContent);
  const removed = root.querySelector(".cm-deletedLine");
  return {
    marks: texts(".cm-deletedLine mark, .cm-line .cm-changedText"),
    removed: removed && [...removed.children].map((node) => node.textContent),
    colours: texts(".cm-deletedLine .c-key"),
    bar: removed && getComputedStyle(removed, "::before").backgroundImage,
    said: root.querySelector(".cm-line.cm-added")?.dataset.said,
    old: texts(".cm-oldNumbers .cm-gutterElement").filter(Boolean),
    hidden: texts(".cm-unfold"),
  };
}"""
"""Function that returns how the change of one line looks."""


@pytest.mark.parametrize("colours", ["none", "active"])
def test_a_changed_line_has_marked_words_signs_and_both_numbers(page: Page, colours: Any) -> None:
    page.emulate_media(forced_colors=colours)
    same = "".join(f"x{number} = {number}\n" for number in range(20))
    mount(page, f"{same}if due is None: pass\n", f"{same}if left is None: pass\n")
    page.evaluate("mounted.diff.path = 'a.py'")
    page.locator("isthmus-diff .cm-deletedLine .c-key").first.wait_for()
    found = page.evaluate(SIGNS_OF)
    assert found["marks"] == ["due", "left"]
    assert found["removed"] == ["21", "", "\u2212", "removed if due is None: pass"]
    assert found["colours"][0] == "if"
    assert "repeating-linear-gradient" in found["bar"]  # not by its colour alone, nor without colours
    assert found["said"] == "added "
    assert found["old"][-3:] == ["19", "20", "22"]  # the changed line has its number beside its text
    assert found["hidden"] == ["17 unchanged lines"]
    unfold = page.get_by_role("button", name="17 unchanged lines")
    unfold.focus()
    page.keyboard.press("Enter")
    expect(page.locator("isthmus-diff .cm-line")).to_have_count(22)


@pytest.mark.parametrize(("width", "place"), [(800, ".cm-hunk"), (1200, ".nk")])
def test_each_state_of_a_hunk_is_seen_in_forced_colours(page: Page, width: int, place: str) -> None:
    page.emulate_media(forced_colors="active")
    same = lines_of("same", 20)
    mount(page, f"one\n{same}two\n", f"ONE\n{same}TWO\n", width)
    found = page.locator(f"isthmus-diff {place}").first
    seen = {"open": found.screenshot()}
    for name in ("taken", "kept"):
        found.locator(f"button[name={name}]").click()
        expect(found.locator(f"button[name={name}]")).to_have_attribute("aria-pressed", "true")
        page.evaluate("mounted.diff.shadowRoot.activeElement?.blur()")
        page.mouse.move(0, 700)
        seen[name] = found.screenshot()
    assert len(set(seen.values())) == 3


def lines_of(name: str, count: int) -> str:
    return "".join(f"{name} {number}\n" for number in range(count))


def test_what_the_user_types_elsewhere_leaves_the_rest_unseen(page: Page) -> None:
    top, middle, end = lines_of("top", 400), lines_of("UNSEEN", 60), lines_of("end", 400)
    mount(page, None, top + middle + end)
    text = json.dumps(lines_of("mine", 300) + middle + lines_of("my end", 300))
    assert unseen(page, f"diff.edit({{ text: {text}, hunks: [] }}); await new Promise((done) => setTimeout(done, 300))")
    assert go_on(page) is None


@pytest.mark.parametrize("width", first_of([800, 1200]))
def test_with_a_hunk_kept_as_it_was_the_other_is_still_to_be_seen_and_can_be(page: Page, width: int) -> None:
    same = lines_of("same", 50)
    old = lines_of("old", 300) + same + lines_of("former", 300)
    mount(page, old, lines_of("new", 300) + same + lines_of("later", 300), width)
    left = unseen(page, "diff.goHunk(1); await frame(); diff.decide(true)")
    assert left
    assert go_on(page) is None


@pytest.mark.extended
def test_another_text_before_is_to_be_seen_anew(page: Page) -> None:
    old, new = lines_of("old", 300), lines_of("new", 300)
    mount(page, old, new)
    assert go_on(page) is None
    more = json.dumps(old + lines_of("of the user", 300))
    assert unseen(
        page, f"diff.oldText = {more}; await diff.updateComplete; await new Promise((d) => setTimeout(d, 300))"
    )
    assert go_on(page) is None


def test_a_view_in_two_columns_knows_what_was_seen_in_one(page: Page) -> None:
    mount(page, lines_of("old", 300), lines_of("new", 300), 1200)
    assert go_on(page) is None
    assert unseen(page, "diff.toggle(); await new Promise((done) => setTimeout(done, 300))") is None


def test_what_a_dialog_covers_was_not_seen_until_it_is_closed(page: Page) -> None:
    mount(page, None, lines_of("new", 600))
    begun = unseen(page, "const over = document.createElement('dialog'); document.body.append(over); over.showModal()")
    assert begun
    assert go_on(page) == begun
    page.evaluate("document.querySelector('dialog[open]').close()")
    assert go_on(page) is None


MAP = """
async (share) => {
  const { box, diff } = mounted;
  const map = diff.shadowRoot.querySelector(".map"), limit = map.getBoundingClientRect();
  map.dispatchEvent(new MouseEvent("click", { clientY: limit.top + share * limit.height, bubbles: true }));
  await new Promise((done) => setTimeout(done, 300));
  const window = map.querySelector("u").getBoundingClientRect(), now = map.getBoundingClientRect();
  const lines = [...diff.shadowRoot.querySelectorAll(".cm-changedLine, .row.added")].filter((line) => {
    const { top, bottom } = line.getBoundingClientRect();
    return bottom > box.getBoundingClientRect().top && top < box.getBoundingClientRect().bottom;
  });
  return {
    marks: map.querySelectorAll("i").length,
    now: map.querySelectorAll("i.at").length,
    width: now.width,
    isLevel: Math.abs(now.top - limit.top) < 2 && Math.abs(now.height - limit.height) < 2,
    from: (window.top - now.top) / now.height,
    to: (window.bottom - now.top) / now.height,
    text: lines.map((line) => line.textContent).join(" "),
  };
}
"""
"""Clicks on a place of the map, and says what it shows and which changed lines are on the screen afterwards."""


@pytest.mark.parametrize("count", first_of([60_000, 600]))
def test_the_map_of_a_long_change_shows_where_one_is_and_scrolls_there(page: Page, count: int) -> None:
    old = [f"line {number}\n" for number in range(count)]
    places = range(count // 4, count, count // 2)
    new = [f"changed {at}\n" if at in places else line for at, line in enumerate(old)]
    mount(page, "".join(old), "".join(new), 1200)
    # Of a change that fits there is none.
    assert page.evaluate("mounted.diff.hasAttribute('mapped')") is False
    new = [f"changed {at}\n" if at % (count // 60) == 0 else line for at, line in enumerate(old)]
    mount(page, "".join(old), "".join(new), 1200)
    eventually(lambda: page.evaluate("mounted.diff.hasAttribute('mapped')"), what="the change has a map")
    middle = page.evaluate(MAP, 0.5)
    assert (middle["width"], middle["now"], middle["isLevel"]) == (12, 1, True)
    assert middle["marks"] > 20
    assert middle["from"] < 0.55
    assert middle["to"] > 0.45
    assert "changed" in middle["text"]
    assert page.evaluate(MAP, 0.001)["from"] < 0.1
    assert page.evaluate(MAP, 0.999)["to"] > 0.95


def test_large_changes_wait_until_each_hunk_was_on_the_screen(page: Page) -> None:
    lines = text_of(300_000, 1)
    new = [f"changed {at}\n" if at % 500 == 0 else line for at, line in enumerate(lines)]
    found = read_all(page, "".join(lines), "".join(new))
    assert found["begun"]["all"] == len(range(0, len(lines), 500))
    assert found["steps"] >= 3
    assert found["left"] is None
    new_file = read_all(page, None, "".join(NEW_LINES))
    assert (new_file["begun"], new_file["left"]) == ({"seen": 0, "all": 1}, None)
    small = read_all(page, None, "".join(NEW_LINES[:300]))
    assert small["begun"] is None


def test_a_new_file_of_many_lines_is_allowed_once_all_of_it_was_seen(page: Page, served: Workbench) -> None:
    created = name()
    ask(page, served, f"create {created}")
    allow = page.locator("isthmus-question .primary")
    expect(page.get_by_text("Allow waits until all of it was on the screen.")).to_be_visible()
    answer_by(page, "y")
    allow.click(force=True)
    expect(allow).to_have_attribute("aria-disabled", "true")
    page.locator("isthmus-question h2").focus()
    for _ in range(200):
        if not page.get_by_text("Allow waits").count():
            break
        page.keyboard.press("Space")
        page.wait_for_timeout(50)  # delay: a user who pages looks at each screen for a moment
    until_answers_count(page)
    assert not (served.workspace / f"{created}.txt").exists()
    answer_by(page, "y")
    expect(page.locator(".item.done")).to_have_count(1)
    path = served.workspace / f"{created}.txt"
    eventually(lambda: path.exists() and path.read_text() == "".join(NEW_LINES))


def test_what_was_not_seen_can_be_rejected(page: Page, served: Workbench) -> None:
    created = name()
    ask(page, served, f"create {created}")
    expect(page.get_by_text("Allow waits until all of it was on the screen.")).to_be_visible()
    answer_by(page, "N")
    expect(page.locator(".item.done")).to_have_count(1)
    assert not (served.workspace / f"{created}.txt").exists()


@pytest.mark.parametrize("size", first_of([1_000_000, 1_000, 5_000_000]))
def test_a_change_in_a_file_of_any_size_is_shown_and_written(page: Page, served: Workbench, size: int) -> None:
    changed = name()
    lines = text_of(size, 3)
    lines.insert(len(lines) // 2, "the needle\n")
    (served.workspace / f"{changed}.txt").write_text("".join(lines))
    ask(page, served, f"replace in {changed}")
    expect(page.get_by_text("another needle").first).to_be_visible()
    until_answers_count(page)
    answer_by(page, "y")
    expect(page.locator(".item.done")).to_have_count(1)
    eventually(lambda: "another needle\n" in (served.workspace / f"{changed}.txt").read_text())


@pytest.mark.extended
def test_without_the_editor_of_changes_the_change_is_shown_all_the_same(page: Page, served: Workbench) -> None:
    changed = name()
    (served.workspace / f"{changed}.txt").write_text("".join([*NEW_LINES, "the needle\n"]))
    page.route("**/diff-editor-*.js", lambda route: route.abort())
    page.evaluate(
        "navigator.serviceWorker.getRegistrations().then((all) => Promise.all(all.map((one) => one.unregister())))"
    )
    ask(page, served, f"replace in {changed}")
    expect(page.get_by_text("The editor for changes did not load.")).to_be_visible()
    expect(page.locator("isthmus-diff .row.added")).to_contain_text("another needle")
    expect(page.locator("isthmus-diff .fold")).to_have_text("597 unchanged lines")
    until_answers_count(page)
    answer_by(page, "y")
    expect(page.locator(".item.done")).to_have_count(1)


@pytest.mark.extended
def test_many_cells_of_a_notebook_are_a_large_change(page: Page, served: Workbench) -> None:
    (served.workspace / "large.ipynb").write_text(notebook("old"))
    ask(page, served, f"cells {name()}")
    expect(page.get_by_text("of 5 hunks seen. Allow waits until all were on the screen.")).to_be_visible()
    answer_by(page, "y")
    expect(page.locator(".item:not(.done)")).to_have_count(1)


def test_an_answer_counts_only_some_time_after_the_last_part_came(page: Page, served: Workbench) -> None:
    ask(page, served, f"create {name()}")
    expect(page.get_by_text("Allow waits until all of it was on the screen.")).to_be_visible()
    state = page.evaluate("""async () => {
        const card = document.querySelector("isthmus-question"), next = () => new Promise(requestAnimationFrame);
        await new Promise((done) => setTimeout(done, 600));
        while (card.textContent.includes("Allow waits")) {
            card.querySelector("isthmus-diff").goUnseen();
            await next();
            await next();
        }
        return card.querySelector(".primary").getAttribute("aria-disabled");
    }""")
    assert state == "true"
    until_answers_count(page)


def test_a_long_command_is_shown_whole_and_run_once_all_of_it_was_seen(page: Page, served: Workbench) -> None:
    ask(page, served, f"run {name()}")
    expect(page.get_by_text("Allow waits until all of it was on the screen.")).to_be_visible()
    answer_by(page, "y")
    expect(page.locator(".item:not(.done)")).to_have_count(1)
    seen = set[str]()
    for _ in range(200):
        seen |= set(page.locator("isthmus-long-text .text").all_inner_texts())
        if not page.get_by_text("Allow waits").count():
            break
        page.keyboard.press("Space")
        page.wait_for_timeout(50)  # delay: a user who pages looks at each screen for a moment
    assert seen == set(LONG_COMMAND.splitlines())
    until_answers_count(page)
    answer_by(page, "y")
    expect(page.locator(".item.done")).to_have_count(1)


def test_the_page_reported_no_problem(served: Workbench) -> None:
    assert served.problems == []
    assert Path(served.workspace).is_dir()
