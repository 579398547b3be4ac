-- Keyboard focus of reviews and questions: keys that are meant for another window never answer one. Argument: the
-- session that session.lua made.
--
-- A view comes to the front only when the user has paused: in Normal mode or in a terminal, with no key for a second.
-- Keys that come before it could be read are returned to the window where the user was. Only a command of the user that
-- began after that time answers: no timer, no program, and no earlier key.
--
--   vim.g.isthmus_review = {
--     pause = 1.0,    -- seconds without a key after which a view may come to the front
--     reading = 2.0,  -- seconds after that in which keys go back to where the user was
--   }

local session = ...
local api, fn = vim.api, vim.fn
local uv = vim.uv or vim.loop
local programs = session.programs

local DEFAULTS = { pause = 1.0, reading = 2.0 }
local REPEAT_MS = 150 -- for a key that only accepts, too soon after the view was drawn to be more than the last one repeated
local NEXT_MS = 1000 -- for a view that follows the one that was closed: its keys have nowhere else to go
local LOOK_MS = 100 -- between two looks whether a user who is not in Normal mode has come back to it
local MAX_KEYS = 50
local RECENT_MS = 1000 -- after a key of the user, in which what a plugin does later may be its effect
local DISCARDING = { "quit", "qall", "quitall", "close", "tabclose", "bdelete", "bwipeout", "bunload", "edit", "enew" }

local waiting = {} -- views that have not come to the front yet, in their order
local front -- the view that has the keyboard, or gets it soon
local last_key = -math.huge -- when a key came last, in ms
local began -- when the command began that runs now; nil: Neovim waits for keys
local keys = "" -- the keys of that command
local foreign -- why that command is not the user's; nil: it is
local last_users_key = -math.huge -- when the user pressed a key last, in ms
local ours = false -- the keys that come now are from this script
local returned_at -- when keys were given back; their command line may throw nothing away
local closing = false -- a window is being closed, which moves the focus
local looking = false

local function now()
  return uv.hrtime() / 1e6
end

local function setting(name) -- in ms
  local settings = vim.g.isthmus_review
  local value = type(settings) == "table" and settings[name]
  return (type(value) == "number" and value or DEFAULTS[name]) * 1000
end

local function mode()
  return api.nvim_get_mode().mode
end

local function has_paused()
  local current = mode()
  return (current == "n" or current == "nt" or current == "t")
    and now() - last_key >= setting("pause")
    and fn.getcmdwintype() == ""
    and fn.reg_recording() == ""
    and fn.reg_executing() == ""
end

-- A view: {is_open(), is_front(), to_front(), ready(boolean), returned()}. `came_from` is the window where the user was,
-- `from_terminal` whether they typed into a terminal there. `takes_keys_at` is the time in ms from which on it takes
-- keys; nil: it is not in front. `gives_back`: keys before that time are returned to `came_from`.

local function leave(view)
  view.takes_keys_at, view.is_drawn_soon, view.drawn_at = nil, nil, nil
  if view.is_open() then
    view.ready(false)
  end
end

local function takes_keys(view, at, gives_back)
  if front and front ~= view then
    leave(front)
  end
  front, view.takes_keys_at, view.gives_back = view, at, gives_back
  view.is_drawn_soon, view.drawn_at = nil, nil
  local wait = at - now()
  if wait <= 0 then
    return view.ready(true)
  end
  view.ready(false)
  vim.defer_fn(function()
    if view.is_open() and view.takes_keys_at == at then
      view.ready(true)
    end
  end, math.ceil(wait))
end

local focus = {}
session.focus = focus

function focus.may_come()
  return has_paused()
end

-- Note that a view was just brought to the front, because the user had paused.
function focus.came(view)
  takes_keys(view, now() + setting("reading"), true)
end

-- Note that a view got the focus because another one was closed: keys cannot be returned.
function focus.follows(view)
  takes_keys(view, now() + math.min(NEXT_MS, setting("reading")))
  view.is_drawn_soon = true
end

-- Note that a view got the focus: the user went there, unless this script did.
function focus.entered(view)
  if ours then
    return
  elseif began and not foreign and not closing then
    takes_keys(view, began)
  else
    focus.follows(view)
  end
end

function focus.left(view)
  if not ours then
    leave(view)
  end
end

local look

local function look_later(delay)
  if not looking then
    looking = true
    vim.defer_fn(function()
      looking = false
      look()
    end, delay)
  end
end

look = function()
  while waiting[1] and not waiting[1].is_open() do
    table.remove(waiting, 1)
  end
  local view = waiting[1]
  if not view or _G.isthmus_sessions[session.channel] ~= session then
    waiting = {}
    return
  elseif view.is_front() then -- the user went there
    table.remove(waiting, 1)
    return look()
  elseif view.waits_its_turn and front and front.is_open() and front.is_front() and front.waits_its_turn then
    return look_later(3 * LOOK_MS) -- the user is at another one
  elseif not has_paused() then
    return look_later(math.max(LOOK_MS, last_key + setting("pause") - now()))
  end
  table.remove(waiting, 1)
  view.came_from = api.nvim_get_current_win()
  view.from_terminal = mode() == "t"
  focus.by_us(view.to_front)
  focus.came(view)
  look()
end

-- Let a view come to the front when the user pauses: before those that `comes_before` says.
function focus.wait(view)
  local place = #waiting + 1
  for index = #waiting, 1, -1 do
    place = view.comes_before and view.comes_before(waiting[index]) and index or place
  end
  table.insert(waiting, place, view)
  look_later(LOOK_MS)
end

-- Run a function that moves the focus or feeds keys; neither counts as the user's.
function focus.by_us(act, ...)
  local before = ours
  ours = true
  local result = { pcall(act, ...) }
  ours = before
  if not result[1] then
    error(result[2], 0)
  end
  return result[2]
end

-- Return why what runs now is not a command of the user, who may have pressed its key a moment ago; nil if it is one.
function focus.why_not_users(may_be_later)
  if began and not programs.has_waited() then
    return foreign
  elseif may_be_later and now() - last_users_key < RECENT_MS and not programs.is_around() then
    return nil
  end
  return "that did not come from a key"
end

-- Return why the running command is not an answer to the view; nil if it is one. `is_explicit`: it means nothing but an
-- answer to this view, so that it counts as soon as the view that followed another one has been drawn.
function focus.why_not(view, is_explicit)
  local reason = focus.why_not_users()
  if reason then
    return reason
  elseif is_explicit and view.drawn_at and began >= view.drawn_at + REPEAT_MS then
    return nil
  elseif not view.takes_keys_at or began < view.takes_keys_at then
    return "that began before it could be read"
  end
  return nil
end

-- Return when the running command began; nil if it does not come from a key.
function focus.began()
  return began
end

-- Return the keys of the running command, as they were typed.
function focus.keys()
  return fn.keytrans and fn.keytrans(keys) or keys
end

focus.now = now

local function is_mouse(key)
  local name = fn.keytrans and fn.keytrans(key) or ""
  return name:find("Mouse") ~= nil or name:find("ScrollWheel") ~= nil or name:find("Drag") ~= nil
end

local function give_back(key, typed)
  local view = front
  if not (view and view.gives_back and view.takes_keys_at and now() < view.takes_keys_at) then
    return
  elseif not (view.is_open() and view.is_front() and mode() == "n") or is_mouse(key) then
    return
  elseif not api.nvim_win_is_valid(view.came_from) then
    return
  end
  returned_at = now()
  api.nvim_set_current_win(view.came_from)
  leave(view)
  vim.schedule(view.returned)
  if not view.from_terminal or vim.bo.buftype ~= "terminal" then
    return
  elseif typed == key and fn.has("nvim-0.11") == 1 then -- the key can be taken back, and typed once more
    api.nvim_feedkeys("i" .. typed, "int", false)
    return ""
  end
  vim.cmd("startinsert")
end

local namespace = api.nvim_create_namespace("isthmus_keys_" .. session.channel)
local has_safe_state = fn.exists("##SafeState") == 1

local function wait_for_keys()
  programs.waits()
  if front and front.is_drawn_soon and front.is_open() and front.is_front() then
    front.is_drawn_soon, front.drawn_at = nil, now()
  end
  local current = mode():sub(1, 1)
  if current ~= "c" and current ~= "r" then
    began = nil
  end
end

vim.on_key(function(key, typed)
  typed = typed or key -- before 0.10
  if ours or typed == "" then -- not from the keyboard: the rest of a mapping, or a script's
    return
  end
  local at, current = now(), mode()
  local is_middle = current:sub(1, 1) == "c" or current:sub(1, 2) == "no"
  if not began or (not is_middle and at - last_key > setting("pause")) then
    began, keys, foreign = at, "", nil
  end
  local reason = programs.why_not_typed(at - last_users_key < RECENT_MS)
  foreign, last_key = foreign or reason, at
  last_users_key = reason and last_users_key or at
  keys = #keys < MAX_KEYS and keys .. typed or keys
  if not has_safe_state or current == "t" then -- there is no SafeState in a terminal
    vim.schedule(wait_for_keys)
  end
  return give_back(key, typed)
end, namespace)

local function on(events, callback, pattern)
  api.nvim_create_autocmd(events, { group = session.group, pattern = pattern, callback = callback })
end

if has_safe_state then
  on("SafeState", wait_for_keys)
end
on("ModeChanged", vim.schedule_wrap(programs.waits), "*:no*") -- nor where an operator waits for its motion
on({ "WinClosed", "TabClosed" }, function()
  closing = true
  vim.schedule(function()
    closing = false
  end)
end)
-- A returned `:q!` was meant for the view; here it would discard the user's own unsaved changes.
on("CmdlineLeave", function()
  if not returned_at or vim.v.event.abort then
    return
  end
  local is_first = began and began <= returned_at
  returned_at = nil
  local ok, command = pcall(api.nvim_parse_cmd, fn.getcmdline(), {})
  if is_first and ok and command.bang and vim.tbl_contains(DISCARDING, command.cmd) then
    vim.cmd("let v:event.abort = v:true")
    vim.schedule(function()
      session.tell(
        (":%s! is not done: a proposed edit had just come up, and it is not clear which was meant"):format(command.cmd),
        vim.log.levels.WARN
      )
    end)
  end
end, ":")

function focus.stop()
  programs.stop()
  vim.on_key(nil, namespace)
  waiting, front = {}, nil
end
