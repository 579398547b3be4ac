-- The window of the agents' terminals: a split, a floating window, or whatever a function of the user opens.

local api = vim.api

local M = {}
local SPLITS = { right = "botright vsplit", left = "topleft vsplit", top = "topleft split", bottom = "botright split" }
local FLOAT = { width = 0.8, height = 0.8, border = "rounded" } -- parts of the screen; from 1 on columns and lines

local function cells(size, whole, most)
  return math.max(1, math.min(most or whole, math.floor(size < 1 and whole * size or size)))
end

local function open_float(buffer, settings)
  local float = vim.tbl_extend("force", FLOAT, settings or {})
  local columns, lines = vim.o.columns, vim.o.lines - vim.o.cmdheight - 1
  local width, height = cells(float.width, columns, columns - 2), cells(float.height, lines, lines - 2)
  return api.nvim_open_win(buffer, true, vim.tbl_extend("force", {
    relative = "editor", style = "minimal", zindex = 40, -- below questions of agents
    row = math.max(0, math.floor((lines - height) / 2)), col = math.max(0, math.floor((columns - width) / 2)),
  }, float, { width = width, height = height }))
end

local function open_split(buffer, position, size)
  local split = SPLITS[position] or SPLITS.right
  vim.cmd(split)
  local window = api.nvim_get_current_win()
  api.nvim_win_set_buf(window, buffer)
  M.resize(window, position, size)
  return window, split:find("vsplit") ~= nil
end

-- Set the size of a split: its width at a side of the screen, else its height.
function M.resize(window, position, size)
  if position == "top" or position == "bottom" then
    api.nvim_win_set_height(window, cells(size, vim.o.lines))
  else
    api.nvim_win_set_width(window, cells(size, vim.o.columns))
  end
end

-- Open a window for the buffer of a terminal, go there, and return it.
function M.open(buffer, position, size, float)
  local window, is_column
  if type(position) == "function" then
    window = position(buffer) or vim.fn.win_findbuf(buffer)[1]
    assert(window, "isthmus: the function terminal.position has opened no window")
  elseif position == "float" then
    window = open_float(buffer, float)
  else
    window, is_column = open_split(buffer, position, size)
  end
  api.nvim_set_current_win(window)
  local options = { number = false, relativenumber = false, signcolumn = "no", winfixwidth = is_column == true }
  for option, value in pairs(options) do
    api.nvim_set_option_value(option, value, { win = window, scope = "local" })
  end
  return window
end

return M
