"""Documents that are open in a real JupyterLab follow what agents write without a review."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from isthmus.editors.jupyter import editor as jupyter
from isthmus.ide.options import CompanionOptions
from support.claude_cli import ClaudeCli, claude_cli
from support.companion import running_host
from support.jupyter import TOKEN, RunningJupyter, running_lab
from support.waiting import eventually_async

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

LONG = "".join(f"line {number}\n" for number in range(300))
TEXT = "model.toString()"
STATE = "[editor.getCursorPosition().line, editor.host.querySelector('.cm-scroller').scrollTop > 0]"
SAVE = "jupyterapp.commands.execute('docmanager:save')"
TYPE_MEANWHILE = """(() => {
  const { contents } = jupyterapp.serviceManager, get = contents.get;
  contents.get = async function (path, options) {
    const found = await get.call(this, path, options);
    if (options?.content) {
      contents.get = get;
      editor.replaceSelection("typed, ");
      window.hasTyped = true;
    }
    return found;
  };
})()"""
TYPE_WHILE_SAVING = """(() => {
  const { contents } = jupyterapp.serviceManager, save = contents.save;
  contents.save = async function (...options) {
    contents.save = save;
    const found = await save.apply(this, options);
    editor.replaceSelection("typed, ");
    return found;
  };
})()"""
SCROLLED = "document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer').scrollTop > 1000"
SOURCES = "model.toJSON().cells.map((cell) => [cell.source].flat().join(''))"


@pytest.fixture(scope="module")
async def lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningJupyter]:
    async with running_lab(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="module")
async def page(lab: RunningJupyter, browser_beside: "Browser") -> AsyncGenerator["Page"]:
    """Return the page of JupyterLab, which takes seconds to load."""
    page = await browser_beside.new_page()
    await page.goto(f"{lab.address.url}lab?token={TOKEN}")
    await page.wait_for_function("() => window.jupyterapp?.restored", timeout=120_000)
    await page.evaluate("() => jupyterapp.restored")
    yield page
    await page.close()


@pytest.fixture
def folder(lab: RunningJupyter) -> Path:
    return Path(lab.address.root)


@asynccontextmanager
async def agent_beside(lab: RunningJupyter, workspace: Path) -> AsyncGenerator[ClaudeCli]:
    """Start a companion of the server, and an agent that is attached to it."""
    editor = await jupyter.attach(lab.file, (str(workspace),), poll_seconds=0.1)
    async with running_host(editor, CompanionOptions()), claude_cli(workspace) as agent:
        yield agent


async def here(page: "Page", expression: str) -> Any:
    """Return the value of an expression about the document in front."""
    names = "const { content, context } = jupyterapp.shell.currentWidget, { model } = context, editor = content.editor"
    return await page.evaluate(f"async () => {{ {names}; return await ({expression}); }}")


async def opened(page: "Page", agent: ClaudeCli, path: Path) -> None:
    """Open a document in the browser, and wait until agents see that it is open."""
    command = "async (path) => { await jupyterapp.commands.execute('docmanager:open', { path }); }"
    await page.evaluate(command, path.name)
    await here(page, "context.ready")

    async def is_seen() -> bool:
        editors = json.loads(await agent.text("getOpenEditors"))["tabs"]
        return any(tab["isActive"] and tab["uri"] == path.as_uri() for tab in editors)

    await eventually_async(is_seen, what=f"{path.name} is the open file in front")


async def shows(page: "Page", text: str) -> None:
    async def is_shown() -> bool:
        return await here(page, TEXT) == text

    await eventually_async(is_shown, what=f"the document has {text[:40]!r}")


async def told(page: "Page", name: str) -> list[str]:
    """Return what the user was told about a file."""
    return [text for text in await page.locator(".Toastify__toast").all_inner_texts() if name in text]


async def test_a_text_file_follows_the_disk_with_its_cursor(lab: RunningJupyter, page: "Page", folder: Path) -> None:
    path = folder / "a.txt"
    path.write_text(LONG)
    async with agent_beside(lab, folder) as agent:
        await opened(page, agent, path)
        await here(page, "editor.setCursorPosition({ line: 250, column: 0 })")
        await here(page, "editor.revealPosition({ line: 250, column: 0 })")

        async def is_scrolled() -> bool:
            return await here(page, STATE) == [250, True]

        await eventually_async(is_scrolled, what="line 250 in view")
        changed = "first\n" + LONG.replace("line 299\n", "line 299, longer\n")
        path.write_text(changed)
        await shows(page, changed)
        assert await here(page, STATE) == [251, True]
        assert not await here(page, "model.dirty")
        await here(page, SAVE)
        assert path.read_text() == changed
        await here(page, "content.editor.undo()")
        await shows(page, LONG)
        await here(page, SAVE)
        assert path.read_text() == LONG
        (folder / "partial").write_text("replaced\n")
        (folder / "partial").replace(path)
        await shows(page, "replaced\n")
    assert await told(page, "a.txt") == []


async def test_unsaved_text_stays_and_the_user_is_told_once(lab: RunningJupyter, page: "Page", folder: Path) -> None:
    path, other = folder / "b.txt", folder / "c.txt"
    path.write_text("old\n")
    other.write_text("old\n")
    async with agent_beside(lab, folder) as agent:
        await opened(page, agent, path)
        await here(page, "editor.replaceSelection('mine, ')")
        assert await here(page, "model.dirty")
        await opened(page, agent, other)
        for text in ("new\n", "a newer text\n"):
            path.write_text(text)
            other.write_text(text)
            await shows(page, text)

        [message] = await eventually_async(lambda: told(page, "b.txt"), what="the message")
        assert "b.txt has changed on disk; your unsaved text stays as it is" in message
        await opened(page, agent, path)
        assert await here(page, TEXT) == "mine, old\n"


async def test_what_is_typed_while_the_text_is_read_is_not_lost(
    lab: RunningJupyter, page: "Page", folder: Path
) -> None:
    path = folder / "d.txt"
    path.write_text("old\n")
    async with agent_beside(lab, folder) as agent:
        await opened(page, agent, path)
        await here(page, TYPE_MEANWHILE)
        path.write_text("new\n")
        await page.wait_for_function("() => window.hasTyped")

        await eventually_async(lambda: told(page, "d.txt"), what="the message")
        assert await here(page, TEXT) == "typed, old\n"
        assert await here(page, "model.dirty")
        saving = asyncio.create_task(here(page, SAVE))
        await page.get_by_role("button", name="Cancel").click()
        await saving
        assert path.read_text() == "new\n"


async def test_what_is_typed_while_the_text_is_saved_is_not_lost(
    lab: RunningJupyter, page: "Page", folder: Path
) -> None:
    path = folder / "g.txt"
    path.write_text("old\n")
    async with agent_beside(lab, folder) as agent:
        await opened(page, agent, path)
        await here(page, "editor.replaceSelection('mine, ')")
        await here(page, TYPE_WHILE_SAVING)
        await here(page, SAVE)
        assert path.read_text() == "mine, old\n"
        assert not await here(page, "model.dirty")  # JupyterLab takes it for saved
        path.write_text("new\n")
        await eventually_async(lambda: told(page, path.name), what="the message")
        assert await here(page, TEXT) == "mine, typed, old\n"


def notebook(sources: Mapping[str, str]) -> str:
    """Return a notebook of cells with an output each, by the ids of the cells."""
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "execution_count": 1, "id": name, "metadata": {},
         "outputs": [{"output_type": "stream", "name": "stdout", "text": [f"output of {name}\n"]}], "source": [source]}
        for name, source in sources.items()
    ]  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.extended
async def test_a_notebook_follows_and_its_other_cells_stay(lab: RunningJupyter, page: "Page", folder: Path) -> None:
    path, cells = folder / "e.ipynb", {f"cell-{number}": f"a{number} = {number}" for number in range(60)}
    path.write_text(notebook(cells))
    async with agent_beside(lab, folder) as agent:
        await opened(page, agent, path)
        await here(page, "content.activeCellIndex = 40")
        await here(page, "content.scrollToItem(40)")

        async def is_scrolled() -> bool:
            return await here(page, SCROLLED)

        await eventually_async(is_scrolled, what="cell 40 in view")
        await here(page, "(window.kept = content.widgets[40], null)")
        added = {"added": "new = 1", **cells, "cell-2": "changed = 2"}
        del added["cell-7"]
        for changed in ({**cells, "cell-2": "changed = 2"}, added):
            path.write_text(notebook(changed))

            async def is_new(changed: Mapping[str, str] = changed) -> bool:
                return await here(page, SOURCES) == list(changed.values())

            await eventually_async(is_new, what="the new cells")
        assert await here(page, "[kept.isDisposed, content.activeCell === kept]") == [False, True]
        assert await here(page, SCROLLED)
        outputs = "model.toJSON().cells.map((cell) => [cell.outputs[0].text].flat().join(''))"
        assert await here(page, outputs) == [f"output of {name}\n" for name in added]
        await here(page, SAVE)
        assert [cell["source"] for cell in json.loads(path.read_text())["cells"]] == [[text] for text in added.values()]
        assert await told(page, path.name) == []
        await here(page, "content.activeCell.editor.replaceSelection('mine, ')")
        path.write_text(notebook(cells))
        await eventually_async(lambda: told(page, path.name), what="the message")
        sources = await here(page, SOURCES)
        assert (sources[0], "mine, " in sources[40]) == ("new = 1", True)


@pytest.mark.extended
async def test_a_notebook_that_is_replaced_by_another_one_follows(
    lab: RunningJupyter, page: "Page", folder: Path
) -> None:
    path = folder / "f.ipynb"
    path.write_text(notebook({"one": "a = 1", "two": "b = 2"}))
    async with agent_beside(lab, folder) as agent:
        await opened(page, agent, path)
        await here(page, "content.activeCellIndex = 1")
        other = json.loads(notebook({"three": "c = 3"}))
        path.write_text(json.dumps(other | {"metadata": {**other["metadata"], "title": "Another one"}}))

        async def is_new() -> bool:
            return await here(page, SOURCES) == ["c = 3"]

        await eventually_async(is_new, what="the new cells")
        assert await here(page, "[model.getMetadata('title'), content.activeCellIndex]") == ["Another one", 0]
