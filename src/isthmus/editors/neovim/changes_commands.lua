-- Commands of the user about what agents wrote: show, keep, undo, take back. Argument: the session that session.lua made
-- and changes.lua completed.
--
-- Only a key or command of the user decides; what a program sends to Neovim decides nothing.

local session = ...
local api, fn = vim.api, vim.fn
local changes, focus, tell = session.changes, session.focus, session.tell

local COMMANDS = {
  IsthmusChanges = "List what agents wrote since you last looked, or show a file beside its former text",
  IsthmusKeep = "Keep what an agent wrote: the hunks here, a file, a turn, or with ! everything",
  IsthmusUndo = "Undo what an agent wrote: the hunks here, a file, a turn, or with ! everything",
  IsthmusRedo = "Take back the undo of the hunk here, or the newest one",
}
local DONE = { written_keep = "kept", written_undo = "undone", written_take_back = "brought back" }
local RESULTS = { written_keep = "kept", written_undo = "undone", written_take_back = "restored" }
local WARN = vim.log.levels.WARN

-- Send decisions of the user, one after the other, and say what became of them.
local function decide(name, requests)
  local request = table.remove(requests, 1)
  changes.ask(name, next(request) and request or nil, function(result, problem)
    if problem then
      tell(problem, WARN)
    elseif result.changed then
      tell(("more was written or decided since the list was shown; nothing was %s. Look again"):format(DONE[name]), WARN)
    else
      for _, each in ipairs(result.problems or {}) do
        tell(each, WARN)
      end
      local paths = result[RESULTS[name]]
      local what = #paths == 1 and changes.label(paths[1]) or #paths .. " files"
      if #paths > 0 then
        tell(("%s %s"):format(DONE[name], what) .. (name == "written_undo" and "; :IsthmusRedo brings it back" or ""))
      end
      session.reload(name ~= "written_keep" and paths or {})
    end
    if requests[1] and not problem and not result.changed then
      requests[1].state = requests[1].state and result.state -- that of this decision: others since are not seen
      return decide(name, requests)
    end
    changes.look()
  end)
end

local function ids(hunks)
  local found = {}
  for _, hunk in ipairs(hunks) do
    if hunk.state == "written" then
      found[#found + 1] = hunk.id
    end
  end
  return found
end

-- Return a request for the file or turn that an argument names, or nil and why there is none.
local function named(argument)
  local turn = tonumber(argument:match("^turn%s+(%d+)$"))
  local state = changes.listing and changes.listing.state
  if turn then
    return { turn = turn, state = changes.seen_state() or state }
  end
  local path = fn.fnamemodify(argument, ":p")
  local buffer = session.find_buffer(path)
  local marked = buffer and changes.marked[buffer]
  local hunks = marked and ids(marked.file.hunks) or {}
  if #hunks > 0 then
    return { path = marked.path, hunks = hunks }
  end
  return { path = path, state = state }
end

-- Return requests for the items of lines in the list.
local function listed(items)
  local state, requests, whole = changes.seen_state(), {}, {}
  if not state then
    return nil, "the list has just changed under the cursor; once more does it"
  end
  for _, item in ipairs(items) do
    if item.turn and not item.path then
      whole[item.turn] = true
      requests[#requests + 1] = { turn = item.turn, state = state }
    elseif item.path and not whole[item.turn] then
      requests[#requests + 1] = { turn = item.turn, path = item.path, state = state }
    end
  end
  return requests, "nothing that an agent wrote is on this line"
end

local function chosen(command)
  if command.args ~= "" then
    return { named(command.args) }
  elseif command.bang then
    local state = changes.seen_state()
    if not state then
      changes.open_list()
      return nil, "this is all that waits; once more decides about all of it"
    end
    return { { state = state } }
  end
  local items = changes.items_here(command.line1, command.line2)
  if items then
    return listed(items)
  end
  local hunks = changes.hunks_here(command.line1, command.line2)
  local found = ids(hunks or {})
  if not hunks or not hunks[1] then
    return nil, ("nothing that an agent wrote is %s; :IsthmusChanges lists all"):format(hunks and "on this line" or "known here")
  elseif #found == 0 then
    return nil, "this is undone already; :IsthmusRedo brings it back"
  end
  return { { path = changes.path_here(), hunks = found } }
end

local function take_back(command)
  local numbers, requests = {}, {}
  local items = changes.items_here(command.line1, command.line2)
  for _, each in ipairs(items or changes.hunks_here(command.line1, command.line2) or {}) do
    if each.undo and not numbers[each.undo] then
      numbers[each.undo] = true
      requests[#requests + 1] = { undo = each.undo }
    end
  end
  decide("written_take_back", requests[1] and requests or { {} })
end

-- Decide as a command says. `name` is that of the request to the companion.
function changes.decide(name, command)
  local foreign = focus.why_not_users()
  if foreign then
    return tell(("nothing is %s: %s; once more does it"):format(DONE[name], foreign), WARN)
  elseif name == "written_take_back" then
    return take_back(command)
  end
  local requests, problem = chosen(command)
  if not requests or not requests[1] then
    return tell(problem, WARN)
  end
  decide(name, requests)
end

-- Show the list, or the file with a path.
function changes.open(path)
  if not path then
    return changes.open_list()
  end
  local buffer = session.find_buffer(path)
  changes.show(buffer and changes.path_of(buffer) or path)
end

-- Return what the companion knows that is meant here: of several, one that shows something here, or has something to show.
local function meant()
  local line, found = fn.line("."), nil
  for _, each in pairs(_G.isthmus_sessions) do
    local other = each.changes
    if other.items_here(line, line) or other.hunks_here(line, line) then
      return other
    end
    found = (not found or other.waiting.files > found.waiting.files) and other or found
  end
  return found
end

local function acting(name)
  return function(command)
    meant().decide(name, command)
  end
end

local function complete(lead)
  local found = {}
  for path in pairs(meant().files) do
    found[#found + 1] = fn.fnamemodify(path, ":~:.")
  end
  table.sort(found)
  return vim.tbl_filter(function(each)
    return vim.startswith(each, lead)
  end, found)
end

local function complete_with_turns(lead, line)
  local is_begun = line:match("%sturn%s+%S*$")
  local found = is_begun and {} or complete(lead)
  for _, turn in ipairs((meant().listing or {}).turns or {}) do
    local text = is_begun and tostring(turn.number) or "turn " .. turn.number
    if vim.startswith(text, lead) then
      found[#found + 1] = text
    end
  end
  return found
end

local function define(name, act, options)
  options = vim.tbl_extend("error", options, { force = true, desc = COMMANDS[name] })
  api.nvim_create_user_command(name, act, options)
end

define("IsthmusChanges", function(command)
  meant().open(command.args ~= "" and fn.fnamemodify(command.args, ":p") or nil)
end, { nargs = "?", complete = complete })
define("IsthmusKeep", acting("written_keep"), { nargs = "*", range = true, bang = true, complete = complete_with_turns })
define("IsthmusUndo", acting("written_undo"), { nargs = "*", range = true, bang = true, complete = complete_with_turns })
define("IsthmusRedo", acting("written_take_back"), { range = true })

local remove_others = session.remove_commands
function session.remove_commands()
  for name in pairs(COMMANDS) do
    pcall(api.nvim_del_user_command, name)
  end
  remove_others()
end
