-- The list of what agents wrote, newest turn first, in a window below the others. Argument: the session that session.lua
-- made and changes.lua completed.

local session = ...
local api, fn = vim.api, vim.fn
local changes, focus, group = session.changes, session.focus, session.group

local MOST_LINES = 15 -- of the window
local KINDS = { created = "A", deleted = "D", changed = "M" }
local HELP = "a keep  x undo  u take back  A X the turn  <CR> show  J K turn  q close"

local list -- {buffer, items: line -> {turn, path, undo}, shown_at}
local highlights = api.nvim_create_namespace("isthmus_changes_" .. session.channel)

local function is_visible()
  return list ~= nil and api.nvim_buf_is_valid(list.buffer) and #fn.win_findbuf(list.buffer) > 0
end

function changes.is_listed()
  return is_visible()
end

local function counted(number, noun)
  return ("%d %s%s"):format(number, noun, number == 1 and "" or "s")
end

local function state_of(file)
  local parts = {}
  if file.renamed_from then
    parts[#parts + 1] = "was " .. changes.label(file.renamed_from)
  end
  if file.undone > 0 then
    parts[#parts + 1] = file.written > 0 and file.undone .. " undone" or "undone"
  end
  if file.why ~= "" then
    parts[#parts + 1] = "cannot be undone: " .. fn.strtrans(file.why)
  end
  return table.concat(parts, ", ")
end

-- Return the lines of the list, what each stands for, and the highlights of whole lines.
local function build(listing)
  local lines, items, marks = {}, {}, {}
  local function add(text, item, highlight)
    lines[#lines + 1] = text
    items[#lines], marks[#lines] = item, highlight
  end
  local since = listing.since > 0 and ", " .. changes.clock(listing.since) or ""
  local added, removed = 0, 0
  for _, turn in ipairs(listing.turns) do
    added, removed = added + turn.added, removed + turn.removed
  end
  if #listing.files == 0 then
    add(("Nothing was written since you last looked%s."):format(since), nil, "Title")
  else
    local all = { counted(#listing.turns, "turn"), counted(#listing.files, "file"), ("+%d -%d"):format(added, removed) }
    add(("Since you last looked%s: %s"):format(since, table.concat(all, ", ")), nil, "Title")
    add(HELP, nil, "Comment")
  end
  if listing.problem ~= "" then
    add("Agents are not followed: " .. fn.strtrans(listing.problem), nil, "WarningMsg")
  elseif listing.partial then
    add("There are more files than are followed.", nil, "WarningMsg")
  end
  for index = #listing.turns, 1, -1 do
    local turn = listing.turns[index]
    add("")
    local title = turn.title ~= "" and ('  "%s"'):format(fn.strtrans(turn.title)) or ""
    add(("Turn %d  %s  %s%s  +%d -%d%s"):format(
      turn.number, changes.clock(turn.last_at), changes.agents(turn), title, turn.added, turn.removed,
      turn.working and "  goes on" or ""
    ), { turn = turn.number }, "Directory")
    for _, file in ipairs(turn.files) do
      local state = state_of(file)
      add(("  %s %s  +%d -%d%s"):format(
        file.written == 0 and "-" or KINDS[file.kind], changes.label(file.path), file.added, file.removed, state ~= "" and "  " .. state or ""
      ), { turn = turn.number, path = file.path }, file.written == 0 and "IsthmusUndone" or nil)
    end
  end
  for index = #listing.undos, 1, -1 do
    local undo = listing.undos[index]
    if index == #listing.undos then
      add("")
    end
    local names = table.concat(vim.tbl_map(changes.label, undo.files), ", ")
    add(("Undone %s  %s"):format(changes.clock(undo.at), names), { undo = undo.number }, "IsthmusUndone")
  end
  return lines, items, marks
end

local function fill(lines, items, marks)
  local former = list.items
  local places = {}
  for _, window in ipairs(fn.win_findbuf(list.buffer)) do
    places[window] = api.nvim_win_get_cursor(window)
  end
  vim.bo[list.buffer].modifiable = true
  api.nvim_buf_set_lines(list.buffer, 0, -1, false, lines)
  vim.bo[list.buffer].modifiable = false
  vim.bo[list.buffer].modified = false
  api.nvim_buf_clear_namespace(list.buffer, highlights, 0, -1)
  for line, highlight in pairs(marks) do
    api.nvim_buf_set_extmark(list.buffer, highlights, line - 1, 0, { end_col = #lines[line], hl_group = highlight })
  end
  list.items = items
  for window, place in pairs(places) do -- the cursor stays on what it was on
    local item, line = former[place[1]], nil
    for number, other in pairs(items) do
      line = item and vim.deep_equal(item, other) and number or line
    end
    if not line then -- what was under the cursor is gone: keys that are under way must not decide about another one
      list.shown_at = focus.now()
      line = next(former) == nil and #lines >= 5 and 5 or math.min(place[1], #lines)
    end
    pcall(api.nvim_win_set_cursor, window, { line, place[2] })
    if list.own and window == list.window then
      api.nvim_win_set_height(window, math.max(5, math.min(#lines, MOST_LINES)))
    end
  end
end

function changes.update_list(problem)
  if not is_visible() then
    return
  elseif problem then
    fill({ fn.strtrans(problem) }, {}, { "WarningMsg" })
  else
    list.state = changes.listing.state
    fill(build(changes.listing))
  end
end

-- Return the state of what the user sees in the list; nil: it is not shown, or has not been for long enough.
function changes.seen_state()
  local began = focus.began()
  return is_visible() and list.state and began and began >= list.shown_at and list.state or nil
end

-- Return what lines `first` to `last` (from 1) of the list stand for, or nil in another buffer.
function changes.items_here(first, last)
  if not list or api.nvim_get_current_buf() ~= list.buffer then
    return nil
  end
  local found = {}
  for line = first, last do
    found[#found + 1] = list.items[line]
  end
  return found
end

local function to_turn(step)
  local line = api.nvim_win_get_cursor(0)[1] + step
  while line >= 1 and line <= api.nvim_buf_line_count(list.buffer) do
    local item = list.items[line]
    if item and item.turn and not item.path then
      return api.nvim_win_set_cursor(0, { line, 0 })
    end
    line = line + step
  end
end

local function show_item()
  local item = list.items[api.nvim_win_get_cursor(0)[1]]
  local turn = item and item.turn and changes.turn(item.turn)
  local undo = item and item.undo
  for _, each in ipairs(undo and changes.listing.undos or {}) do
    item = each.number == undo and { path = each.files[1] } or item
  end
  local path = item and (item.path or turn and turn.files[1] and turn.files[1].path)
  if not path then
    return
  end
  local here = api.nvim_get_current_win()
  vim.cmd("wincmd p") -- the options of this window are the list's
  changes.show(path, item.turn, here)
end

local function map(keys, act, description, mode)
  vim.keymap.set(mode or "n", keys, act, { buffer = list.buffer, nowait = true, silent = true, desc = "Isthmus: " .. description })
end

local function set_keys()
  map("a", "<Cmd>IsthmusKeep<CR>", "keep this")
  map("a", ":IsthmusKeep<CR>", "keep these", "x")
  map("x", "<Cmd>IsthmusUndo<CR>", "undo this")
  map("x", ":IsthmusUndo<CR>", "undo these", "x")
  map("u", "<Cmd>IsthmusRedo<CR>", "take back the undo")
  for key, command in pairs({ A = "IsthmusKeep", X = "IsthmusUndo" }) do
    map(key, function()
      local item = list.items[api.nvim_win_get_cursor(0)[1]]
      if item and item.turn then
        vim.cmd(("%s turn %d"):format(command, item.turn))
      end
    end, command == "IsthmusKeep" and "keep the turn" or "undo the turn")
  end
  map("<CR>", show_item, "show this file")
  map("J", function() to_turn(1) end, "next turn")
  map("K", function() to_turn(-1) end, "former turn")
  map("R", changes.look, "look again")
  map("q", "<Cmd>close<CR>", "close")
end

-- Show the list, and go there: only for a command of the user.
function changes.open_list()
  changes.moves = changes.moves + 1
  if is_visible() then
    local windows = fn.win_findbuf(list.buffer)
    for _, window in ipairs(windows) do
      if api.nvim_win_get_tabpage(window) == api.nvim_get_current_tabpage() then
        api.nvim_set_current_win(window)
        return changes.look()
      end
    end
  end
  changes.close_list()
  local buffer = api.nvim_create_buf(false, true)
  vim.cmd("botright split")
  local window = api.nvim_get_current_win()
  pcall(api.nvim_set_option_value, "winfixbuf", false, { win = window, scope = "local" })
  api.nvim_win_set_buf(window, buffer)
  list = { buffer = buffer, window = window, own = true, items = {}, shown_at = focus.now() }
  pcall(api.nvim_buf_set_name, buffer, "isthmus://changes")
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].filetype = "isthmus-changes"
  local options = { number = false, relativenumber = false, wrap = false, cursorline = true, winfixheight = true }
  for name, value in pairs(vim.tbl_extend("error", options, { foldenable = false, spell = false, list = false, signcolumn = "no" })) do
    api.nvim_set_option_value(name, value, { win = window, scope = "local" })
  end
  set_keys()
  fill({ "Looking ..." }, {}, {})
  changes.look()
end

function changes.close_list()
  local former = list
  list = nil
  if former and api.nvim_buf_is_valid(former.buffer) then
    pcall(api.nvim_buf_delete, former.buffer, { force = true })
  end
end

api.nvim_create_autocmd("BufWipeout", {
  group = group,
  pattern = "isthmus://changes",
  callback = function(event)
    if list and list.buffer == event.buf then
      list = nil
    end
  end,
})
