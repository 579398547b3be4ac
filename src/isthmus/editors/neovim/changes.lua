-- What agents wrote without a review: asking the companion, signs beside the lines that were written, and a hint.
-- Argument: the session that session.lua made. changes_view.lua shows a file beside its former text, changes_list.lua
-- all files, and changes_commands.lua has the user's commands.
--
-- Nothing here takes the focus. Every question has one answer, later; the companion decides by hunks that are named by
-- their content, so what is shown here may be out of date without harm.
--
--   vim.g.isthmus_changes = {
--     notify = true, -- say once what was written when agents have been quiet
--     quiet = 2.0,   -- for so many seconds
--     signs = true,  -- beside the lines
--   }

local session = ...
local api, fn = vim.api, vim.fn
local uv = vim.uv or vim.loop
local group, tell = session.group, session.tell
local compare = vim.text and vim.text.diff or vim.diff -- the name since 0.12

local DEFAULTS = { notify = true, quiet = 2.0, signs = true }
local REFRESH_MS = 150 -- after a change, in which others may follow
local RESTS = 10 -- times the duration of a comparison until the next one
local MOST_QUIET_MS = 30000 -- after which the hint comes although agents still write
local MOST_SIGNS = 2000 -- in one buffer
local SIGN, REMOVED_SIGN = "┃", "_"

-- `moves` counts how often the user went to a view or the list.
local changes = { files = {}, waiting = { files = 0, turns = 0 }, marked = {}, moves = 0 }
session.changes = changes

-- Ranges of hunks, which move with the text; their signs; and texts beside them while they are shown as a diff.
local places = api.nvim_create_namespace("isthmus_written_" .. session.channel)
local signs = api.nvim_create_namespace("isthmus_written_signs_" .. session.channel)

for name, target in pairs({ IsthmusWritten = "DiagnosticSignInfo", IsthmusUndone = "Comment" }) do
  api.nvim_set_hl(0, name, { link = target, default = true })
end

local function setting(name)
  local settings = vim.g.isthmus_changes
  local value = type(settings) == "table" and settings[name]
  if type(settings) ~= "table" or type(value) ~= type(DEFAULTS[name]) then
    return DEFAULTS[name]
  end
  return value
end

-- Asking -------------------------------------------------------------------------------------------------------------

local questions, asked = {}, 0 -- number -> function that takes the result, or nil and the problem

function changes.ask(name, params, reply)
  asked = asked + 1
  local id = tostring(asked)
  questions[id] = reply
  if not session.notify("isthmus", "changes", id, name, params or vim.empty_dict()) then
    questions[id] = nil
  end
end

function session.changes_answered(answer)
  local reply = questions[answer.id]
  questions[answer.id] = nil
  if reply then
    reply(answer.result, answer.problem)
  end
end

-- Return the path by which the companion knows the file of a buffer, if an agent wrote it.
function changes.path_of(buffer)
  local viewed = changes.viewed_path(buffer)
  if viewed then
    return changes.files[viewed] and viewed
  end
  local name = session.file_name(buffer)
  if not name or changes.files[name] then
    return name and changes.files[name] and name
  end
  local real = uv.fs_realpath(name)
  for path in pairs(real and changes.files or {}) do
    if uv.fs_realpath(path) == real then
      return path
    end
  end
end

-- Return a path as it is shown: short, and without control characters.
function changes.label(path)
  return fn.strtrans(fn.fnamemodify(path, ":~:."))
end

function changes.clock(at)
  local is_today = os.date("%x", at) == os.date("%x")
  return os.date(is_today and "%H:%M" or "%d %b %H:%M", at)
end

function changes.turn(number)
  for _, turn in ipairs(changes.listing and changes.listing.turns or {}) do
    if turn.number == number then
      return turn
    end
  end
end

function changes.agents(turn)
  return #turn.agents > 0 and fn.strtrans(table.concat(turn.agents, ", ")) or "an agent"
end

-- Signs --------------------------------------------------------------------------------------------------------------

local function whole(lines)
  return #lines == 1 and lines[1] == "" and "" or table.concat(lines, "\n") .. "\n"
end

-- Return a function from lines of the recorded text to those of a buffer that has unsaved changes, or is read later.
local function translation(lines, buffer)
  local now = api.nvim_buf_get_lines(buffer, 0, -1, false)
  if vim.deep_equal(now, lines) then
    return function(row)
      return row
    end
  end
  local hunks = compare(whole(lines), whole(now), { result_type = "indices" })
  return function(row)
    local offset = 0
    for _, hunk in ipairs(hunks) do
      local start, other = hunk[1] - (hunk[2] > 0 and 1 or 0), hunk[3] - (hunk[4] > 0 and 1 or 0)
      if start + hunk[2] <= row then
        offset = other + hunk[4] - start - hunk[2]
      elseif start <= row then
        return other + math.min(row - start, hunk[4])
      end
    end
    return row + offset
  end
end

-- Return the text that stands beside a hunk: who wrote it when, and what goes with it.
local function note_of(hunk)
  if hunk.state == "undone" then
    return "undone; :IsthmusRedo brings it back", "IsthmusUndone"
  end
  local names, at = {}, nil
  for _, number in ipairs(hunk.turns) do
    local turn = changes.turn(number)
    local name = turn and changes.agents(turn)
    if name and not vim.tbl_contains(names, name) then
      names[#names + 1] = name
    end
    at = turn and turn.last_at or at
  end
  local note = ("turn%s %s"):format(#hunk.turns == 1 and "" or "s", table.concat(hunk.turns, ", "))
  note = at and ("%s %s %s"):format(note, table.concat(names, ", "), changes.clock(at)) or note
  if #hunk.later > 0 then
    note = note .. "; undo takes turn " .. table.concat(hunk.later, ", ") .. " too"
  end
  return note, "IsthmusWritten"
end

local function unmark(buffer)
  changes.marked[buffer] = nil
  if api.nvim_buf_is_valid(buffer) then
    api.nvim_buf_clear_namespace(buffer, places, 0, -1)
    api.nvim_buf_clear_namespace(buffer, signs, 0, -1)
  end
end

-- Note the hunks of a file in its buffer. `is_shown`: it is shown as a diff, and says who wrote what.
function changes.mark(buffer, file, is_shown)
  unmark(buffer)
  local hunks, count, last = {}, 0, api.nvim_buf_line_count(buffer)
  local row_of = translation(file.new.lines, buffer)
  for _, hunk in ipairs(file.hunks) do
    local size = hunk.state == "written" and hunk.new_count or 0
    local start = math.min(row_of(hunk.line), last)
    local stop = size == 0 and start or math.min(math.max(row_of(hunk.line + size), start), last)
    local row = math.min(start, last - 1)
    local is_end = stop > last - 1 -- a mark may end behind the last line only at its end
    local ok, id = pcall(api.nvim_buf_set_extmark, buffer, places, row, 0, {
      end_row = is_end and last - 1 or math.max(stop, row),
      end_col = is_end and #session.line_at(buffer, last - 1) or 0,
      right_gravity = true, -- a line that the user inserts above or below is not part of it
      end_right_gravity = stop == start,
    })
    if ok then
      hunks[id] = { hunk = hunk, is_empty = stop == start, is_after = start > last - 1 }
      local sign = { sign_text = stop == start and REMOVED_SIGN or SIGN, priority = 8 }
      sign.sign_hl_group = hunk.state == "written" and "IsthmusWritten" or "IsthmusUndone"
      for line = row, setting("signs") and math.max(row, stop - 1) or row - 1 do
        count = count + 1
        if count <= MOST_SIGNS then
          api.nvim_buf_set_extmark(buffer, signs, line, 0, sign)
        end
      end
      if is_shown then
        local text, highlight = note_of(hunk)
        api.nvim_buf_set_extmark(buffer, signs, row, 0, {
          virt_text = { { " " .. text .. " ", highlight } }, virt_text_pos = "eol", hl_mode = "combine",
        })
      end
    end
  end
  changes.marked[buffer] = { path = file.path, file = file, hunks = hunks }
end

-- Return the hunks on lines `first` to `last` (from 1) of a buffer with marks, in their order; nil: it has none.
function changes.hunks_at(buffer, first, last)
  local marked = changes.marked[buffer]
  if not marked then
    return nil
  end
  local found = {}
  for id, known in pairs(marked.hunks) do
    local mark = api.nvim_buf_get_extmark_by_id(buffer, places, id, { details = true })
    if mark[1] then
      local start = mark[1] + (known.is_after and 1 or 0)
      local details = mark[3]
      local stop = details.end_row + (details.end_col > 0 and 1 or 0)
      found[#found + 1] = { start, known.is_empty and 0 or math.max(stop - start, 1), known.hunk }
    end
  end
  table.sort(found, function(one, other)
    return one[1] < other[1]
  end)
  return vim.tbl_map(function(each)
    return each[3]
  end, session.touched_hunks(found, 1, first - 1, last - 1))
end

local function visible_buffers()
  local found = {}
  for _, window in ipairs(api.nvim_list_wins()) do
    found[api.nvim_win_get_buf(window)] = true
  end
  return found
end

local function mark_visible()
  local visible = visible_buffers()
  for buffer in pairs(changes.marked) do
    if not api.nvim_buf_is_valid(buffer) or not changes.path_of(buffer) then
      unmark(buffer)
    end
  end
  for buffer in pairs(visible) do
    local path = api.nvim_buf_is_loaded(buffer) and changes.path_of(buffer)
    if path and changes.files[path].text then
      changes.ask("written_file", { path = path }, function(file)
        if file and api.nvim_buf_is_loaded(buffer) then
          changes.mark(buffer, file, changes.is_viewed(buffer))
          changes.update_view(buffer, file)
        end
      end)
    elseif changes.is_viewed(buffer) then
      changes.update_view(buffer, nil)
    end
  end
end

-- Hints --------------------------------------------------------------------------------------------------------------

local told_until = 0 -- when the newest write was of which the user knows
local noisy_since -- when the first write came after which agents were not quiet yet, in ms
local quiet = uv.new_timer()
local is_stopped = false

local function names_and_files(after) -- of turns with writes after a time
  local names, files, newest = {}, {}, after
  for _, turn in ipairs(changes.listing and changes.listing.turns or {}) do
    if turn.last_at > after then
      newest = math.max(newest, turn.last_at)
      for _, file in ipairs(turn.files) do
        if file.written > 0 then
          files[file.path] = true
          names[changes.agents(turn)] = true
        end
      end
    end
  end
  names = vim.tbl_keys(names)
  table.sort(names)
  return table.concat(names, ", "), vim.tbl_count(files), newest
end

local function give_hint()
  local mode = api.nvim_get_mode().mode
  if is_stopped then
    return
  elseif not (mode:sub(1, 1) == "n" or mode:sub(1, 1) == "t") then -- it would hide what the user types
    return quiet:start(500, 0, vim.schedule_wrap(give_hint))
  end
  noisy_since = nil
  local names, count, newest = names_and_files(told_until)
  told_until = newest
  if count > 0 and setting("notify") and not changes.is_listed() then
    tell(("%d file%s written by %s; :IsthmusChanges"):format(count, count == 1 and "" or "s", names))
  end
end

-- Looking ------------------------------------------------------------------------------------------------------------

local is_asking, is_wanted, is_urgent, timer = false, false, false, uv.new_timer()
local rests_until = 0 -- a comparison is followed by a pause, as those of the companion are, unless the user asks

local function look_later()
  local wait = math.max(REFRESH_MS, rests_until - uv.hrtime() / 1e6)
  timer:start(math.floor(wait), 0, vim.schedule_wrap(function()
    changes.look(true)
  end))
end

local function set_status()
  local count = 0
  for _, each in pairs(_G.isthmus_sessions) do -- several companions see the same files
    count = math.max(count, each.changes and each.changes.waiting.files or 0)
  end
  vim.g.isthmus_written = count > 0 and ("%d file%s written"):format(count, count == 1 and "" or "s") or ""
  pcall(vim.cmd, "redrawstatus!")
end

local function take(listing)
  changes.listing, changes.files = listing, {}
  for _, file in ipairs(listing.files) do
    changes.files[file.path] = file
  end
  mark_visible()
  changes.update_list()
  local names = names_and_files(0)
  session.fire("Changes", { files = changes.waiting.files, turns = changes.waiting.turns, agents = names })
  noisy_since = noisy_since or uv.now()
  local wait = math.min(setting("quiet") * 1000, math.max(noisy_since + MOST_QUIET_MS - uv.now(), 0))
  quiet:start(math.floor(wait), 0, vim.schedule_wrap(give_hint))
end

-- Ask for the list of all that was written, and show it wherever it is shown. `is_late`: nobody waits for it.
function changes.look(is_late)
  if is_asking or is_stopped then
    is_wanted, is_urgent = is_asking, is_urgent or not is_late
    return
  end
  is_asking = true
  local began = uv.hrtime() / 1e6
  changes.ask("written", nil, function(listing, problem)
    is_asking = false
    local now = uv.hrtime() / 1e6
    rests_until = now + RESTS * (now - began)
    if listing then
      take(listing)
    else
      changes.update_list(problem)
    end
    if is_wanted and is_urgent then
      is_wanted, is_urgent = false, false
      changes.look()
    elseif is_wanted then
      is_wanted = false
      look_later()
    end
  end)
end

function session.changes_written(waiting)
  changes.waiting = waiting
  set_status()
  look_later()
end

api.nvim_create_autocmd({ "BufWinEnter", "BufWritePost" }, {
  group = group,
  callback = function(event)
    local is_known = event.event == "BufWritePost" or not changes.marked[event.buf]
    if is_known and changes.path_of(event.buf) then
      look_later()
    end
  end,
})

-- A buffer that is read again has lost the places of its marks.
api.nvim_create_autocmd({ "FileChangedShellPost", "BufReadPost" }, {
  group = group,
  callback = function(event)
    local marked = changes.marked[event.buf]
    if marked and api.nvim_buf_is_loaded(event.buf) then
      changes.mark(event.buf, marked.file, changes.is_viewed(event.buf))
    end
  end,
})

function changes.stop()
  is_stopped = true
  quiet:stop()
  timer:stop()
  for _, each in ipairs({ quiet, timer }) do
    if not each:is_closing() then
      each:close()
    end
  end
  for buffer in pairs(vim.deepcopy(changes.marked)) do
    unmark(buffer)
  end
  changes.close_list()
  changes.close_views()
  changes.waiting = { files = 0, turns = 0 }
  set_status()
end
