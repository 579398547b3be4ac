-- Operations of a companion on Neovim's files: open, close, read and save them, list their diagnostics, and set
-- variables for new terminals. Argument: the session that session.lua made.
--
-- Nothing here asks the user: where Neovim would ask, the safe answer is given, or an error says why not.

local session = ...
local api, fn = vim.api, vim.fn
local group, changed, tell = session.group, session.changed, session.tell
local find_buffer, file_name = session.find_buffer, session.file_name
local utf16, bytes, line_at = session.utf16, session.bytes, session.line_at

local MAX_DIAGNOSTICS = 5000

function session.message(text)
  vim.schedule(function()
    tell(text)
  end)
end

local function window_for_files()
  local function usable(window)
    return window
      and api.nvim_win_is_valid(window)
      and api.nvim_win_get_config(window).relative == ""
      and vim.bo[api.nvim_win_get_buf(window)].buftype == ""
      and not vim.wo[window].previewwindow
  end
  local candidates = api.nvim_tabpage_list_wins(0)
  table.insert(candidates, 1, session.active_window() or -1)
  table.insert(candidates, 1, api.nvim_get_current_win())
  for _, window in ipairs(candidates) do
    if usable(window) then
      return window
    end
  end
  vim.cmd("topleft split")
  return api.nvim_get_current_win()
end

local function place_cursor(buffer, range)
  local function place(position)
    local last = api.nvim_buf_line_count(buffer) - 1
    if position[1] > last then -- behind the last line: that line is meant, to its end
      return last, #line_at(buffer, last)
    end
    local row = math.max(0, position[1])
    return row, bytes(line_at(buffer, row), position[2])
  end
  local row, column = place(range[1])
  local last_row, last_column = place(range[2])
  api.nvim_win_set_cursor(0, { row + 1, column })
  if last_row < row or (last_row == row and last_column <= column) then
    return
  end
  if last_column == 0 and last_row > row then -- up to a line's start: the line before, whole
    last_row = last_row - 1
    last_column = #line_at(buffer, last_row)
  end
  session.focus.by_us(vim.cmd, "normal! v")
  api.nvim_win_set_cursor(0, { last_row + 1, math.max(0, last_column - 1) })
end

function session.open_file(path, range, focus)
  local buffer = find_buffer(path) or fn.bufadd(path)
  vim.bo[buffer].buflisted = true
  session.touch(buffer)
  if not focus then
    changed()
    return
  end
  local swap = api.nvim_create_autocmd("SwapExists", {
    group = group,
    callback = function()
      vim.v.swapchoice = "o" -- the question would block the editor: open read-only, as its careful answer does
    end,
  })
  api.nvim_set_current_win(window_for_files())
  local ok, problem = pcall(vim.cmd, "buffer " .. buffer)
  if not ok then
    ok, problem = pcall(vim.cmd, "sbuffer " .. buffer)
  end
  api.nvim_del_autocmd(swap)
  if not ok then
    error(problem, 0)
  end
  if range ~= vim.NIL then
    place_cursor(buffer, range)
  end
  changed()
end

function session.close_file(path)
  local buffer = find_buffer(path)
  if not buffer or not vim.bo[buffer].buflisted then
    return
  end
  if vim.bo[buffer].modified then
    error("it has unsaved changes", 0)
  end
  vim.cmd("bdelete " .. buffer)
  changed()
end

function session.text(path)
  local buffer = find_buffer(path)
  if not buffer or not vim.bo[buffer].buflisted then
    return vim.NIL
  end
  fn.bufload(buffer)
  return {
    lines = api.nvim_buf_get_lines(buffer, 0, -1, true),
    fileformat = vim.bo[buffer].fileformat,
    endofline = vim.bo[buffer].endofline,
    bomb = vim.bo[buffer].bomb,
  }
end

-- _G.isthmus_environment, for all companions of this Neovim: the channel of the last one that set variables, and the
-- values before any did. A killed companion cannot restore them, and new terminals would lead to it.
function session.set_environment(variables)
  local ours = _G.isthmus_environment or { former = {} }
  for name, value in pairs(variables) do
    if ours.former[name] == nil then
      ours.former[name] = vim.env[name] or false
    end
    vim.env[name] = value or nil
  end
  ours.channel = session.channel
  _G.isthmus_environment = ours
end

function session.restore_environment()
  local ours = _G.isthmus_environment
  if ours and ours.channel == session.channel then
    for name, former in pairs(ours.former) do
      vim.env[name] = former or nil
    end
    _G.isthmus_environment = nil
  end
end

function session.is_dirty(path)
  local buffer = find_buffer(path)
  if not buffer or not vim.bo[buffer].buflisted then
    return vim.NIL
  end
  return vim.bo[buffer].modified
end

-- Neovim's own check, which reads a file without changes again if 'autoread' is set, and asks nobody. The user's
-- autocommands for it choose what else happens if `theirs` is true. Returns why the buffer differs from the disk.
function session.changed_on_disk(buffer, theirs)
  local reason = vim.b[buffer].isthmus_changed_on_disk
  local watch = api.nvim_create_autocmd("FileChangedShell", {
    group = group,
    buffer = buffer,
    callback = function()
      reason = vim.v.fcs_reason
      if not theirs then
        vim.v.fcs_choice = ""
      end
    end,
  })
  pcall(vim.cmd, "silent! checktime " .. buffer)
  api.nvim_del_autocmd(watch)
  if reason == "time" or reason == "mode" then
    reason = nil
  end
  vim.b[buffer].isthmus_changed_on_disk = reason -- Neovim tells once; the writing itself would ask again
  return reason
end

function session.save(path)
  local buffer = find_buffer(path)
  if not buffer or not api.nvim_buf_is_loaded(buffer) then
    error("it is not open", 0)
  end
  if not vim.bo[buffer].modified then
    return
  end
  if vim.bo[buffer].readonly then
    error("it is read-only", 0)
  end
  local reason = session.changed_on_disk(buffer)
  if reason then
    error("the file changed on disk since Neovim read it (" .. reason .. "); choose in Neovim with :w! or :e!", 0)
  end
  api.nvim_buf_call(buffer, function()
    vim.cmd("silent write")
  end)
  changed()
end

function session.diagnostics(path)
  local only = path ~= vim.NIL and path or nil
  local buffer = only and find_buffer(only)
  if only and not buffer then
    return {}
  end
  local found = {}
  for _, item in ipairs(vim.diagnostic.get(buffer)) do
    local name = file_name(item.bufnr)
    if name and #found < MAX_DIAGNOSTICS then
      local function place(row, column)
        return { row, utf16(line_at(item.bufnr, row), column) }
      end
      found[#found + 1] = {
        path = only or name,
        start = place(item.lnum, item.col),
        ["end"] = place(item.end_lnum or item.lnum, item.end_col or item.col),
        severity = item.severity,
        message = item.message,
        source = item.source,
        code = item.code ~= nil and tostring(item.code) or nil,
      }
    end
  end
  return found
end
