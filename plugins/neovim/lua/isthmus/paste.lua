-- Large pastes into the terminals of agents. Before Neovim 0.12.2 what the user pastes there arrives in parts, each a paste
-- of its own, and an agent may take them for several; here they are joined. Pastes elsewhere are as ever.

local api = vim.api

local M = {}
local is_watching = false
local target -- the window in which a paste in parts began, if an agent's terminal is in it
local parts = {}

local function add(lines) -- the parts meet within a line
  for index, line in ipairs(lines) do
    if index == 1 and #parts > 0 then
      parts[#parts] = parts[#parts] .. line
    else
      parts[#parts + 1] = line
    end
  end
end

-- Join the parts of pastes from now on, if this Neovim needs it.
function M.watch()
  if is_watching or vim.fn.has("nvim-0.12.2") == 1 then
    return
  end
  is_watching = true
  local paste = vim.paste
  vim.paste = function(lines, phase)
    if phase == 1 then -- the first part
      target = vim.b.isthmus_agent and api.nvim_get_current_win() or nil
      parts = {}
    end
    if not target or phase == -1 then
      return paste(lines, phase)
    end
    add(lines)
    if phase ~= 3 then
      return true
    end
    local window, whole = target, parts
    target, parts = nil, {}
    if not api.nvim_win_is_valid(window) then
      return true
    end
    return api.nvim_win_call(window, function() return paste(whole, -1) end)
  end
end

return M
