-- Tools that the user declares inside Neovim with require("isthmus").tool, and the calls of agents. Argument: the
-- session that session.lua made.
--
-- _G.isthmus_tools has the tools by name, for all companions. A result is sent once, as a notification; the companion
-- has the deadline.

local session = ...
local MAX_BYTES = 4 * 1024 * 1024 -- of a result; the companion cuts it again, for the model

function session.tools()
  local listed = {}
  for name, tool in pairs(_G.isthmus_tools or {}) do
    listed[#listed + 1] = { name = name, description = tool.description, schema = vim.json.encode(tool.schema) }
  end
  table.sort(listed, function(one, other)
    return one.name < other.name
  end)
  return listed
end

function session.tools_changed()
  session.notify("isthmus", "tools", session.tools())
end

function session.run_tool(call)
  local is_open = true
  local function reply(result, problem)
    if not is_open then
      return
    end
    is_open = false
    local text = problem or result
    if type(text) ~= "string" then
      local ok, encoded = pcall(vim.json.encode, text)
      text, problem = encoded, not ok and encoded or problem
    end
    session.notify("isthmus", "tool_result", call.id, problem == nil, text:sub(1, MAX_BYTES))
  end
  local tool = (_G.isthmus_tools or {})[call.name]
  if not tool then
    return reply(nil, "it is not offered any more")
  end
  local ok, result = pcall(tool.run, call.arguments, reply)
  if not ok then
    reply(nil, tostring(result))
  elseif not tool.async then
    reply(result == nil and "" or result)
  end
end
