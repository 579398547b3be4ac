-- A session of Isthmus inside Neovim (0.8 or newer), while a companion is attached: files, focus, selection and
-- diagnostics. Argument: the companion's channel. The session is in _G.isthmus_sessions[channel], and detach() removes
-- it. Nothing here waits, prompts, or writes a file that the user did not name. focus.lua, documents.lua, review.lua and
-- user.lua add the keyboard, the companion's operations on files, reviews, and the user's commands.
--
-- Positions are exchanged as {line, character}, 0-based, character in UTF-16 units; times are Unix seconds.

local channel = ...
local api, fn = vim.api, vim.fn
local uv = vim.uv or vim.loop

local NOTIFY_AFTER_MS = 15
local WATCH_MS = 1000 -- between two looks whether the companion is still there
local MOST_LINES = 20 -- of one message
local MAX_COLUMN = 2147483647 -- v:maxcol, which the oldest Neovims do not have
local MAX_FILES = 1000
local MAX_SELECTION_BYTES = 256 * 1024
local VISUAL = { v = "v", V = "V", ["\22"] = "\22", s = "v", S = "V", ["\19"] = "\22" }

_G.isthmus_sessions = _G.isthmus_sessions or {}
local session = {}
local group = api.nvim_create_augroup("isthmus_" .. channel, { clear = true })
local focused = {} -- buffer -> Unix seconds
local active, active_window -- the file that has, or had last, the focus
local kept -- {buffer, selection}: a selection that ended because the user went to another window
local pending = false

local orphan

local function now()
  local seconds, microseconds = uv.gettimeofday()
  return seconds + microseconds / 1e6
end

local function notify(...)
  local ok = pcall(vim.rpcnotify, channel, ...)
  if not ok and orphan then
    vim.schedule(orphan)
  end
  return ok
end

local function changed()
  if not pending then
    pending = true
    vim.defer_fn(function()
      pending = false
      notify("isthmus", "changed")
    end, NOTIFY_AFTER_MS)
  end
end

-- A line that is longer than the screen, or a second line, would cause a prompt that blocks the editor. So a long text
-- is shown line by line, with a redraw between them; `:messages` has all of it.
local function tell(text, level)
  local room = math.max(20, vim.o.columns - 20)
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    if line ~= "" and fn.strdisplaywidth(line) + 1 + fn.strdisplaywidth(word) > room then
      table.insert(lines, line)
      line = ""
    end
    line = line == "" and word or line .. " " .. word
    while fn.strdisplaywidth(line) > room do
      local start = fn.strcharpart(line, 0, room)
      start = fn.strdisplaywidth(start) > room and fn.strcharpart(line, 0, math.floor(room / 2)) or start
      table.insert(lines, start)
      line = line:sub(#start + 1)
    end
  end
  table.insert(lines, line)
  for number, shown in ipairs(lines) do
    if number > MOST_LINES then
      break
    elseif number > 1 then
      pcall(vim.cmd, "redraw")
    end
    vim.notify((number == 1 and "Isthmus: " or "  ") .. shown, level or vim.log.levels.INFO)
  end
end

-- Run the user's autocommands `User Isthmus...`, later: they may do anything.
local function fire(name, data)
  vim.schedule(function()
    pcall(api.nvim_exec_autocmds, "User", { pattern = "Isthmus" .. name, modeline = false, data = data })
  end)
end

-- Files and positions ------------------------------------------------------------------------------------------------

local function file_name(buffer)
  if not api.nvim_buf_is_valid(buffer) or not vim.bo[buffer].buflisted or vim.bo[buffer].buftype ~= "" then
    return nil
  end
  local name = api.nvim_buf_get_name(buffer)
  if name:match("^/") or name:match("^%a:[/\\]") then
    return name
  end
  return nil
end

local function find_buffer(path)
  for _, buffer in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_valid(buffer) and vim.bo[buffer].buftype == "" and api.nvim_buf_get_name(buffer) == path then
      return buffer
    end
  end
  local real = uv.fs_realpath(path)
  for _, buffer in ipairs(real and api.nvim_list_bufs() or {}) do
    if file_name(buffer) and uv.fs_realpath(file_name(buffer)) == real then
      return buffer
    end
  end
  return nil
end

local function utf16(line, byte)
  byte = math.max(0, math.min(byte, #line))
  if fn.has("nvim-0.11") == 1 then
    return vim.str_utfindex(line, "utf-16", byte, false)
  end
  local _, units = vim.str_utfindex(line, byte)
  return units
end

local function bytes(line, units)
  if fn.has("nvim-0.11") == 1 then
    return vim.str_byteindex(line, "utf-16", units, false)
  end
  local ok, byte = pcall(vim.str_byteindex, line, units, true)
  return ok and byte or #line
end

local function line_at(buffer, row)
  return api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ""
end

local function character_end(line, byte) -- the byte after the character that starts at `byte` (0-based)
  if byte >= #line then
    return #line
  end
  return byte + #fn.strcharpart(line:sub(byte + 1, byte + 64), 0, 1)
end

local function lines_text(buffer, first, last, from, to) -- whole lines between, cut at MAX_SELECTION_BYTES
  local parts, size = {}, 0
  for row = first, last do
    local line = line_at(buffer, row)
    local part = line:sub(row == first and from + 1 or 1, row == last and to or #line)
    parts[#parts + 1] = part
    size = size + #part + 1
    if size > MAX_SELECTION_BYTES then
      return fn.strcharpart(table.concat(parts, "\n"), 0, MAX_SELECTION_BYTES) .. "... [TRUNCATED]"
    end
  end
  return table.concat(parts, "\n")
end

local function block_text(first, last, one, other)
  local function left(place)
    return place[3] > 1 and fn.virtcol({ place[2], place[3] - 1 }) + 1 or 1
  end
  local from = math.min(left(one), left(other))
  local to = math.max(fn.virtcol({ one[2], one[3] }), fn.virtcol({ other[2], other[3] }))
  if fn.winsaveview().curswant >= MAX_COLUMN then
    to = 1000000 -- extended with $
  end
  local pattern = ("\\%%>%dv.*\\%%<%dv"):format(from - 1, to + 2)
  local parts, size = {}, 0
  for row = first, last do
    parts[#parts + 1] = fn.matchstr(line_at(0, row), pattern)
    size = size + #parts[#parts] + 1
    if size > MAX_SELECTION_BYTES then
      parts[#parts + 1] = "... [TRUNCATED]"
      break
    end
  end
  return table.concat(parts, "\n")
end

local function region(kind, one, other) -- of the current buffer; places as getpos() gives them
  if one[2] > other[2] or (one[2] == other[2] and one[3] > other[3]) then
    one, other = other, one
  end
  local first, last = one[2] - 1, other[2] - 1
  local from, to = one[3] - 1, other[3] - 1
  local last_line = line_at(0, last)
  if kind == "V" then
    from, to = 0, #last_line
  elseif vim.o.selection ~= "exclusive" then
    to = character_end(last_line, to)
  end
  to = math.min(to, #last_line)
  local text = kind == "\22" and block_text(first, last, one, other) or lines_text(0, first, last, from, to)
  if text == "" then
    return nil
  end
  local start = { first, utf16(line_at(0, first), from) }
  return { start = start, ["end"] = { last, utf16(last_line, to) }, text = text }
end

local function selection_now()
  local kind = VISUAL[api.nvim_get_mode().mode:sub(1, 1)]
  return kind and region(kind, fn.getpos("v"), fn.getpos("."))
end

local function note_focus()
  local buffer = api.nvim_get_current_buf()
  if file_name(buffer) then
    focused[buffer] = now()
    active, active_window = buffer, api.nvim_get_current_win()
    kept = nil
  end
end

local function cursor_of_active()
  local window = active_window
  if not (window and api.nvim_win_is_valid(window) and api.nvim_win_get_buf(window) == active) then
    window = fn.win_findbuf(active)[1]
  end
  local row, column
  if window then
    local place = api.nvim_win_get_cursor(window)
    row, column = place[1], place[2]
  elseif api.nvim_buf_is_loaded(active) then
    local place = api.nvim_buf_get_mark(active, '"')
    row, column = math.max(1, place[1]), place[2]
  else
    return nil
  end
  return { row - 1, utf16(line_at(active, row - 1), column) }
end

function session.state()
  local files = {}
  local current = api.nvim_get_current_buf()
  if file_name(current) then
    if active ~= current then
      note_focus()
    end
    active_window = api.nvim_get_current_win()
  end
  for _, buffer in ipairs(api.nvim_list_bufs()) do
    local path = file_name(buffer)
    if path and #files < MAX_FILES then
      local file = {
        path = path,
        focused_at = focused[buffer] or now(),
        is_dirty = vim.bo[buffer].modified,
        language_id = vim.bo[buffer].filetype,
        line_count = api.nvim_buf_is_loaded(buffer) and api.nvim_buf_line_count(buffer) or nil,
      }
      focused[buffer] = file.focused_at
      if buffer == active then
        file.is_active = true
        file.cursor = cursor_of_active()
        if buffer == current then
          file.selection = selection_now()
        elseif kept and kept.buffer == buffer then
          file.selection = kept.selection
        end
      end
      files[#files + 1] = file
    end
  end
  return files
end

function session.folders()
  local folders, seen = {}, {}
  local function add(folder)
    if not seen[folder] then
      seen[folder] = true
      folders[#folders + 1] = folder
    end
  end
  add(fn.getcwd(-1, -1))
  for number = 1, fn.tabpagenr("$") do
    add(fn.getcwd(-1, number))
  end
  return folders
end

-- Watching the editor ------------------------------------------------------------------------------------------------

local function on(events, callback, pattern)
  api.nvim_create_autocmd(events, { group = group, pattern = pattern, callback = callback })
end

on("VimLeavePre", function()
  session.reject_reviews()
  notify("isthmus", "leaving")
end)
on({ "BufEnter", "WinEnter", "FocusGained", "VimResume" }, function()
  note_focus()
  changed()
end)
on({ "BufAdd", "BufFilePost" }, function(event)
  focused[event.buf] = focused[event.buf] or now()
  changed()
end)
on({ "BufReadPost", "BufWritePost" }, function(event)
  vim.b[event.buf].isthmus_changed_on_disk = nil
  changed()
end)
on("BufWritePost", function(event)
  local name = file_name(event.buf)
  if name then
    notify("isthmus", "saved", name)
  end
end)
on({ "CursorMoved", "CursorMovedI", "BufModifiedSet", "ShellCmdPost", "FileChangedShellPost", "BufHidden" }, changed)
on({ "BufDelete", "BufWipeout" }, function(event)
  focused[event.buf] = nil -- a number is never given to another buffer
  vim.schedule(changed)
end)
on("ModeChanged", function()
  local before = VISUAL[vim.v.event.old_mode:sub(1, 1)]
  if before and not VISUAL[vim.v.event.new_mode:sub(1, 1)] then
    local buffer = api.nvim_get_current_buf()
    local ok, selection = pcall(region, before, fn.getpos("'<"), fn.getpos("'>"))
    kept = ok and selection and { buffer = buffer, selection = selection } or nil
    vim.schedule(function()
      if kept and kept.buffer == buffer and api.nvim_get_current_buf() == buffer then
        kept = nil
      end
    end)
  end
  changed()
end)
on("DirChanged", function()
  notify("isthmus", "folders")
end)
on("DiagnosticChanged", function(event)
  local name = file_name(event.buf)
  if name then
    notify("isthmus", "diagnostics", name)
  end
end)

-- There is no event for a closed channel, and requests that wait behind a prompt of Neovim are dropped with it.
local watching = fn.timer_start(WATCH_MS, function()
  if next(api.nvim_get_chan_info(channel)) == nil then
    orphan()
  end
end, { ["repeat"] = -1 })

-- The agents that are attached now: titles by id.
function session.agents_changed(agents)
  local former = session.agents
  session.agents = agents
  for id, title in pairs(agents) do
    if not former[id] then
      fire("Attached", { agent = title })
    end
  end
  for id, title in pairs(former) do
    if not agents[id] then
      fire("Detached", { agent = title })
    end
  end
end

local function forget()
  session.agents_changed({})
  fn.timer_stop(watching)
  session.focus.stop()
  session.changes.stop()
  pcall(api.nvim_del_augroup_by_id, group)
  session.restore_environment()
  _G.isthmus_sessions[channel] = nil
  if next(_G.isthmus_sessions) == nil then
    session.remove_commands()
  end
end

function session.detach()
  session.close_reviews()
  session.close_questions()
  forget()
end

-- The companion is gone without detach(): keep what the user typed, and remove everything else.
orphan = function()
  if _G.isthmus_sessions[channel] ~= session then
    return
  end
  forget()
  session.close_questions()
  session.keep_reviews()
  tell("the companion has ended unexpectedly", vim.log.levels.WARN)
end

local latest = 0
for _, buffer in ipairs(api.nvim_list_bufs()) do
  local used = (fn.getbufinfo(buffer)[1] or { lastused = 0 }).lastused -- whole seconds; 0: never
  focused[buffer] = used > 0 and used or now() - 1
  -- The companion is often started in a terminal: the file before it is the one that the user is working on.
  if file_name(buffer) and (used > latest or used == latest and buffer == fn.bufnr("#")) then
    active, latest = buffer, used
  end
end
note_focus()

function session.touch(buffer) -- as if the user had looked at it now
  focused[buffer] = now()
end

function session.active_window() -- the window of the file that has, or had last, the focus
  return active_window
end

session.channel, session.group, session.notify, session.changed, session.tell = channel, group, notify, changed, tell
session.fire, session.agents = fire, {}
session.find_buffer, session.file_name, session.VISUAL = find_buffer, file_name, VISUAL
session.utf16, session.bytes, session.line_at = utf16, bytes, line_at
_G.isthmus_sessions[channel] = session
return session
