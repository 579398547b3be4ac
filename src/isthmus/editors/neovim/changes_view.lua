-- A file that agents wrote, beside its text as the user saw it last, in a tab page of its own. The right side is the
-- user's own buffer of the file. Argument: the session that session.lua made and changes.lua completed.

local session = ...
local api, fn = vim.api, vim.fn
local uv = vim.uv or vim.loop
local changes, group, tell = session.changes, session.group, session.tell

local LARGE = 20000 -- lines; colouring takes a while from here on

local views = {} -- the buffer of the file -> view {path, before, left, right, came_from}

local function view_here()
  local buffer, window = api.nvim_get_current_buf(), api.nvim_get_current_win()
  for file, view in pairs(views) do
    if view.before == buffer or (file == buffer and view.right == window) then
      return view
    end
  end
end

function changes.is_viewed(buffer)
  return views[buffer] ~= nil
end

function changes.viewed_path(buffer)
  return views[buffer] and views[buffer].path
end

local function fill(buffer, text)
  vim.bo[buffer].modifiable = true
  api.nvim_buf_set_lines(buffer, 0, -1, false, text.lines)
  vim.bo[buffer].fileformat, vim.bo[buffer].modified = text.fileformat, false
  vim.bo[buffer].modifiable = false
end

local function bar(window, text)
  if api.nvim_win_is_valid(window) then
    api.nvim_set_option_value("winbar", text, { win = window, scope = "local" })
  end
end

local function literal(text)
  return (text:gsub("%%", "%%%%"))
end

local function keys_hint()
  local leader = vim.g.maplocalleader or "\\"
  leader = literal(fn.keytrans and fn.keytrans(leader) or leader)
  return (" %%#Title#%sa%%* keep  %%#Title#%sx%%* undo  %%#Title#%su%%* take back  "):format(leader, leader, leader)
end

-- Show the newest text and hunks in the view of a buffer; `file` is nil if nothing waits any more.
function changes.update_view(buffer, file)
  local view = views[buffer]
  if not view then
    return
  elseif not file then
    fill(view.before, { lines = api.nvim_buf_get_lines(buffer, 0, -1, false), fileformat = vim.bo[buffer].fileformat })
    bar(view.left, " nothing waits for you here any more; :q closes")
    bar(view.right, " %<" .. literal(changes.label(view.path)))
    return pcall(vim.cmd, "diffupdate")
  end
  local is_first = not view.file
  view.file = file
  fill(view.before, file.old)
  if view.is_gone then -- until an undo writes it again
    fill(buffer, file.new)
  end
  if #file.old.lines < LARGE then
    vim.bo[view.before].syntax = vim.bo[buffer].filetype
  end
  local since = changes.listing and changes.listing.since or 0
  local seen = file.kind == "created" and "a new file; undo deletes it"
    or "as you last saw it" .. (since > 0 and ", " .. changes.clock(since) or "")
  local gone = file.kind == "deleted" and "deleted by the agent; undo writes it again  " or ""
  bar(view.left, " " .. seen)
  bar(view.right, keys_hint() .. gone .. "%<" .. literal(changes.label(view.path)))
  pcall(vim.cmd, "diffupdate")
  if is_first and api.nvim_win_is_valid(view.right) then
    local target = file.hunks[1]
    for _, hunk in ipairs(file.hunks) do
      target = vim.tbl_contains(hunk.turns, view.turn) and not vim.tbl_contains(target.turns, view.turn) and hunk or target
    end
    if target and api.nvim_win_get_cursor(view.right)[1] == 1 then
      local last = api.nvim_buf_line_count(buffer)
      pcall(api.nvim_win_set_cursor, view.right, { math.min(target.line + 1, last), 0 })
    end
  end
end

-- Keys ---------------------------------------------------------------------------------------------------------------

local ACTIONS = {
  { "a", { "n", "x" }, "IsthmusKeep", "keep this hunk" },
  { "x", { "n", "x" }, "IsthmusUndo", "undo this hunk" },
  { "u", { "n" }, "IsthmusRedo", "take back the undo" },
  { "A", { "n" }, "%IsthmusKeep", "keep all hunks of this file" },
  { "X", { "n" }, "%IsthmusUndo", "undo all hunks of this file" },
}

local function set_keys(buffer, prefix)
  local set = {}
  for _, action in ipairs(ACTIONS) do
    local key, modes, command, description = prefix .. action[1], action[2], action[3], action[4]
    for _, mode in ipairs(modes) do
      local former = api.nvim_buf_call(buffer, function()
        return fn.maparg(key, mode, false, true)
      end)
      if former.buffer ~= 1 then -- else it is a mapping of the user's for this buffer
        local keys = mode == "x" and ":" .. command .. "<CR>" or "<Cmd>" .. command .. "<CR>"
        vim.keymap.set(mode, key, keys, { buffer = buffer, silent = true, desc = "Isthmus: " .. description })
        set[#set + 1] = { mode, key }
      end
    end
  end
  return set
end

local keyed -- {buffer, set}: the keys of the view that has the focus

local function release_keys()
  for _, each in ipairs(keyed and api.nvim_buf_is_valid(keyed.buffer) and keyed.set or {}) do
    pcall(vim.keymap.del, each[1], each[2], { buffer = keyed.buffer })
  end
  keyed = nil
end

local function take_keys()
  release_keys()
  local view = view_here()
  local buffer = api.nvim_get_current_buf()
  if view and buffer ~= view.before then
    keyed = { buffer = buffer, set = set_keys(buffer, "<localleader>") }
  end
end

api.nvim_create_autocmd({ "WinEnter", "BufEnter" }, { group = group, callback = take_keys })
api.nvim_create_autocmd({ "WinLeave", "BufLeave" }, { group = group, callback = release_keys })

-- Return the hunks of lines `first` to `last` (from 1) in the current window; nil: nothing of the buffer was written.
function changes.hunks_here(first, last)
  local buffer, view = api.nvim_get_current_buf(), view_here()
  if not view or view.before ~= buffer or not view.file then
    return changes.hunks_at(buffer, first, last)
  end
  local known = vim.tbl_map(function(hunk)
    return { hunk.old_start, hunk.old_count, hunk }
  end, view.file.hunks)
  return vim.tbl_map(function(each)
    return each[3]
  end, session.touched_hunks(known, 1, first - 1, last - 1))
end

-- Return the path of the file that is shown in the current window.
function changes.path_here()
  local view = view_here()
  return view and view.path or changes.path_of(api.nvim_get_current_buf())
end

-- Opening and closing ------------------------------------------------------------------------------------------------

local function is_in(view)
  local window = api.nvim_get_current_win()
  return window == view.left or window == view.right
end

local function close(view, closed) -- `closed` is the window that the user has just closed
  local buffer
  for file, other in pairs(vim.tbl_extend("force", {}, views)) do
    if other == view then
      views[file], buffer = nil, file
      if changes.marked[file] then
        vim.schedule(function()
          if api.nvim_buf_is_loaded(file) and changes.marked[file] then
            changes.mark(file, changes.marked[file].file, false)
          end
        end)
      end
    end
  end
  local is_inside = view.was_inside or is_in(view)
  release_keys()
  if api.nvim_win_is_valid(view.right) and view.right ~= closed then
    bar(view.right, "")
    api.nvim_win_call(view.right, function()
      vim.cmd("diffoff")
    end)
    if api.nvim_win_get_buf(view.right) == buffer then -- else the user has gone on to another file there
      pcall(api.nvim_win_close, view.right, false) -- not if the buffer has unsaved text that would be lost
    end
  end
  if api.nvim_buf_is_valid(view.before) then
    pcall(api.nvim_buf_delete, view.before, { force = true })
  end
  local has_gone_on = view.moves and view.moves ~= changes.moves
  if is_inside and not has_gone_on and not api.nvim_win_is_valid(view.right) and api.nvim_win_is_valid(view.came_from) then
    api.nvim_set_current_win(view.came_from)
  end
end

-- Return the buffer of the right side. A file that is gone has one of ours, because Neovim would make a new file of it.
local function file_buffer(path)
  local buffer = session.find_buffer(path)
  if buffer or uv.fs_stat(path) then
    buffer = buffer or fn.bufadd(path)
    vim.bo[buffer].buflisted = true
    return buffer, false
  end
  for other, view in pairs(views) do
    if view.path == path then
      return other, true
    end
  end
  buffer = api.nvim_create_buf(false, true)
  pcall(api.nvim_buf_set_name, buffer, "isthmus://after " .. fn.fnamemodify(path, ":t"))
  vim.bo[buffer].bufhidden, vim.bo[buffer].modifiable = "wipe", false
  return buffer, true
end

-- Show a file that an agent wrote beside its former text, at the first hunk of `turn`. At the end the user returns to the
-- window `came_from`, by default the present one.
function changes.show(path, turn, came_from)
  changes.moves = changes.moves + 1
  local known = changes.files[path]
  if known and not known.text then
    local why = known.why ~= "" and known.why or "it is not text"
    return tell(("%s cannot be shown: %s; a and x in :IsthmusChanges decide about the file"):format(changes.label(path), why))
  end
  local buffer, is_gone = file_buffer(path)
  local former = views[buffer]
  if former and api.nvim_win_is_valid(former.right) then
    return api.nvim_set_current_win(former.right)
  end
  local view = { path = path, turn = turn, is_gone = is_gone, came_from = came_from or api.nvim_get_current_win() }
  vim.cmd("tab split")
  view.right = api.nvim_get_current_win()
  pcall(api.nvim_set_option_value, "winfixbuf", false, { win = view.right, scope = "local" })
  local swap = api.nvim_create_autocmd("SwapExists", {
    group = group,
    callback = function()
      vim.v.swapchoice = "o" -- the question would block the editor: open read-only, as its careful answer does
    end,
  })
  local ok, problem = pcall(vim.cmd, "buffer " .. buffer)
  api.nvim_del_autocmd(swap)
  if not ok then
    vim.cmd("tabclose")
    return tell(("%s cannot be shown: %s"):format(changes.label(path), problem), vim.log.levels.WARN)
  end
  view.before = api.nvim_create_buf(false, true)
  local name = "isthmus://before " .. fn.fnamemodify(path, ":t")
  if not pcall(api.nvim_buf_set_name, view.before, name) then
    pcall(api.nvim_buf_set_name, view.before, ("%s in %s"):format(name, fn.fnamemodify(path, ":h:t")))
  end
  vim.bo[view.before].bufhidden = "wipe"
  for _, option in ipairs({ "tabstop", "shiftwidth", "expandtab" }) do
    vim.bo[view.before][option] = vim.bo[buffer][option]
  end
  views[buffer] = view
  vim.cmd("leftabove vsplit")
  view.left = api.nvim_get_current_win()
  api.nvim_win_set_buf(view.left, view.before)
  fill(view.before, { lines = api.nvim_buf_get_lines(buffer, 0, -1, false), fileformat = "unix" })
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = view.before, nowait = true, desc = "Isthmus: close" })
  set_keys(view.before, "")
  set_keys(view.before, "<localleader>")
  for _, window in ipairs({ view.left, view.right }) do
    api.nvim_win_call(window, function()
      vim.cmd("diffthis")
    end)
    bar(window, " ...")
  end
  api.nvim_set_current_win(view.right)
  take_keys()
  changes.ask("written_file", { path = path }, function(file, why)
    if views[buffer] ~= view then
      return
    elseif not file then
      tell(why, vim.log.levels.WARN)
      return close(view)
    end
    if not changes.listing then
      changes.look()
    end
    changes.mark(buffer, file, true)
    changes.update_view(buffer, file)
  end)
end

api.nvim_create_autocmd("WinClosed", {
  group = group,
  callback = function(event)
    local window = tonumber(event.match)
    for _, view in pairs(views) do
      if window == view.left or window == view.right then
        view.was_inside, view.moves = view.was_inside or is_in(view), changes.moves
        vim.schedule(function()
          close(view, window)
        end)
      end
    end
  end,
})

function changes.close_views()
  for _, view in pairs(vim.tbl_extend("force", {}, views)) do
    close(view)
  end
end
