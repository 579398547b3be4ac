"""Tools that a user declares in Lua, as agents of both protocols see and call them."""

import asyncio
from typing import Any

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.ide.companion import Companion
from isthmus.ide.gemini.tools import offered_tools
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import PLUGIN, RunningNeovim, hearing
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_DECLARE = """
local isthmus = require("isthmus")
isthmus.tool({
  name = "greet",
  description = "Greet somebody.",
  schema = { properties = { name = { type = "string" } }, required = { "name" } },
  run = function(arguments) return "Hello, " .. arguments.name end,
})
isthmus.tool({ name = "table", description = "Return a table.", run = function() return { a = { 1, 2 } } end })
isthmus.tool({ name = "fail", description = "Fail.", run = function() error("no printer") end })
isthmus.tool({ name = "strange", description = "Return a function.", run = function() return print end })
isthmus.tool({ name = "nothing", description = "Return nothing.", run = function() end })
isthmus.tool({ name = "openDiff", description = "The name of another tool.", run = function() end })
isthmus.tool({
  name = "later", description = "Answer twice, later.", async = true,
  run = function(_, reply) vim.schedule(function() reply(nil, "out of paper") reply("too late") end) end,
})
isthmus.tool({ name = "never", description = "Do not answer.", async = true, run = function() end })
"""


@pytest.fixture
async def neovim(neovim: RunningNeovim) -> RunningNeovim:
    """Declare the tools before the companion attaches, as in init.lua."""
    await neovim.command(f"set runtimepath^={PLUGIN}")
    await neovim.lua(_DECLARE)
    return neovim


async def _call(companion: Companion, tool: str, **arguments: object) -> tuple[str, bool]:
    result = await companion.tools.call(tool, arguments)
    (block,) = result.content or ({"text": ""},)
    return block["text"], result.is_error


async def test_agents_get_the_tools_with_their_schemas_and_no_name_of_another_tool(editor: NeovimEditor) -> None:
    listed: dict[str, Any] = {tool.name: tool.input_schema for tool in offered_tools(Companion(editor))}
    assert list(listed) == ["openDiff", "closeDiff", "fail", "greet", "later", "never", "nothing", "strange", "table"]
    assert listed["nothing"] == {"type": "object", "properties": {}}
    assert listed["greet"] == {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def test_a_call_returns_what_the_function_returns_or_why_it_failed(editor: NeovimEditor) -> None:
    companion = Companion(editor)
    assert await _call(companion, "greet", name="Zoë") == ("Hello, Zoë", False)
    assert await _call(companion, "greet") == ("greet: 'name' is a required property", True)
    assert await _call(companion, "table") == ('{"a":[1,2]}', False)
    assert await _call(companion, "nothing") == ("", False)
    text, is_error = await _call(companion, "fail")
    assert (text.startswith("fail: "), "no printer" in text, is_error) == (True, True, True)
    assert (await _call(companion, "strange"))[1]
    assert await _call(companion, "later") == ("later: out of paper", True)


async def test_a_tool_can_be_declared_and_replaced_while_a_companion_is_attached(
    neovim: RunningNeovim, editor: NeovimEditor
) -> None:
    companion = Companion(editor)
    await neovim.lua(
        "require('isthmus').tool({ name = 'new', description = 'New.', run = function() return 'yes' end })"
    )
    await eventually_async(lambda: "new" in companion.tools, what="the new tool")
    assert await _call(companion, "new") == ("yes", False)
    with pytest.raises(Exception, match="expected a name of letters"):
        await neovim.lua("require('isthmus').tool({ name = 'a b', description = 'x', run = print })")


async def test_a_call_that_waits_fails_when_neovim_quits(neovim: RunningNeovim) -> None:
    editor = await attach(neovim.address, PATIENT_NEOVIM)
    async with hearing(editor):
        waiting = asyncio.create_task(_call(Companion(editor), "never"))
        await neovim.lua("return 0")
        await neovim.quit()
        assert await asyncio.wait_for(waiting, 30) == ("never: Neovim has quit, or the connection to it is lost", True)
    await editor.aclose()
