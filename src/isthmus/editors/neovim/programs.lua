-- Whether a key comes from the user, or from a program that is connected to this Neovim by its socket, as an agent in
-- `:terminal` may be. Argument: the session that session.lua made.
--
-- The user's keys come from a screen: the terminal, a GUI, --remote-ui. Neovim 0.11 knows which channel sent input last,
-- and whether input came at all; keys of feedkeys() come without. Older ones, and those without LuaJIT, know neither:
-- there no key counts as the user's while a program is connected, or was a moment ago.

local session = ...
local api, fn = vim.api, vim.fn
local uv = vim.uv or vim.loop

local AROUND_MS = 1000 -- after a program has left, in which its keys may still come
local SCRIPT = 2 ^ 63 -- from here on a number stands for Lua or Vim script in Neovim itself
local PROGRAM = "a program typed that"
local PERHAPS = "a program is connected to Neovim and may have typed that (`isthmus ide` in another terminal answers, too)"

local programs = {}
session.programs = programs

local seen_at = -math.huge -- when a program was connected last, in ms
local waited = true -- whether Neovim has waited for keys since the last one
local senders = {} -- channel -> true: where the input came from that is not used up
local watching = {} -- the handles that note input

-- Return the part of Neovim that knows about input; nil if this one does not tell. It is only read.
local function find_input()
  local found, ffi = pcall(require, "ffi")
  if not found or type(ffi) ~= "table" then
    return nil
  end
  for _, declaration in ipairs({ "extern uint64_t current_ui;", "size_t input_available(void);" }) do
    pcall(ffi.cdef, declaration) -- another session may have declared it
  end
  local answers = pcall(function()
    return ffi.C.current_ui, ffi.C.input_available()
  end)
  return answers and fn.exists("##SafeState") == 1 and ffi.C or nil
end

local input = find_input()
for _, make in ipairs(input and { uv.new_prepare, uv.new_check } or {}) do -- before and after messages are read
  local handle = make()
  handle:start(function()
    if input.input_available() > 0 then
      senders[tonumber(input.current_ui)] = true
    end
  end)
  watching[#watching + 1] = handle
end

local function now()
  return uv.hrtime() / 1e6
end

local function screens() -- channel -> true
  local found = {}
  for _, ui in ipairs(api.nvim_list_uis()) do
    found[ui.chan] = true
  end
  return found
end

-- Return whether a program is connected, or was a moment ago. Companions and jobs of Neovim do not count.
function programs.is_around()
  local shown = screens()
  for _, channel in ipairs(api.nvim_list_chans()) do
    local is_client = channel.mode == "rpc" and channel.stream == "socket"
    if is_client and not shown[channel.id] and not _G.isthmus_sessions[channel.id] then
      seen_at = now()
    end
  end
  return now() - seen_at < AROUND_MS
end

local function forget_input()
  if input and input.input_available() == 0 and not fn.state("m"):find("m") then -- it is used up
    senders = {}
  end
end

-- Return why the key that is handled now is not the user's; nil if it is. `is_recent`: the user pressed a key within the
-- last second, to which a plugin may react.
function programs.why_not_typed(is_recent)
  local around, is_first = programs.is_around(), waited
  waited = false
  if not input then
    return around and PERHAPS or nil
  end
  local shown = screens()
  local is_script = is_first and next(senders) == nil -- by feedkeys()
  local is_foreign = false
  for sender in pairs(senders) do
    is_script = is_script or sender >= SCRIPT
    is_foreign = is_foreign or (sender < SCRIPT and not shown[sender])
  end
  forget_input()
  local reacts = is_recent and not around
  return (is_foreign or (is_script and not reacts)) and PROGRAM or nil
end

-- Note that Neovim waits for the next key.
function programs.waits()
  waited = true
  forget_input()
end

-- Return whether no key came since Neovim began to wait: what runs now was not typed.
function programs.has_waited()
  return waited
end

function programs.stop()
  for _, handle in ipairs(watching) do
    handle:close()
  end
  watching = {}
end

api.nvim_create_autocmd({ "ChanOpen", "ChanInfo" }, { group = session.group, callback = programs.is_around })
