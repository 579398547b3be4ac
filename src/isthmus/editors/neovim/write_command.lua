-- Who writes: the user's own command, or Neovim and plugins by themselves. Argument: the session that session.lua made.
--
-- In the window of a review, :w, :wq, :x, :update, :wall, ZZ and mappings of these accept. 'autowrite', autocommands and
-- timers that save, and all other commands do not: nobody who uses them has decided on the proposal.

local session = ...
local fn, api = vim.fn, vim.api

local ACCEPTING = { "write", "wq", "xit", "exit", "update", "wall", "wqall", "xall" }
local CHAIN = 10 -- commands of a line, joined by |, that are looked at

local command -- {text, began}: the last command line, and when the user began it

local function accepts(line)
  for _ = 1, CHAIN do
    local ok, parsed = pcall(api.nvim_parse_cmd, line, {})
    if not ok then
      return false
    elseif vim.tbl_contains(ACCEPTING, parsed.cmd) or (parsed.cmd == "normal" and parsed.args[1] == "ZZ") then
      return true
    elseif not parsed.nextcmd or parsed.nextcmd == "" then
      return false
    end
    line = parsed.nextcmd
  end
  return false
end

api.nvim_create_autocmd("CmdlineLeave", {
  group = session.group,
  pattern = ":",
  callback = function()
    command = not vim.v.event.abort and { text = fn.getcmdline(), began = session.focus.began() } or nil
    if command and not vim.o.write and session.review_here() and accepts(command.text) then
      vim.cmd("let v:event.abort = v:true") -- Neovim would refuse it before it asks us
      vim.schedule(function()
        session.tell("writing is switched off (nvim -M): :IsthmusDiffAccept accepts", vim.log.levels.WARN)
      end)
    end
  end,
})

-- Return whether BufWriteCmd was reached through another autocommand. The stack's words are in the user's language, the
-- names of events are not.
local function is_in_autocommand()
  local entries = vim.split(fn.expand("<stack>"), "..", { plain = true })
  local events = {}
  for _, name in ipairs(fn.getcompletion("", "event")) do
    events[name] = name ~= "BufWriteCmd"
  end
  for _, entry in ipairs(entries) do
    for word in entry:gmatch("%a+") do
      if events[word] and not entry:find("[/\\]") then
        return true
      end
    end
  end
  return false
end

local function is_mapping_of_write(keys)
  if keys == "ZZ" or keys == "Z" then -- Neovim may wait for the second one as for a command
    return true
  end
  local found = fn.maparg(keys, "n", false, true)
  local words = type(found.rhs) == "string" and found.rhs:gsub("<[Cc][Rr]>", " "):gsub("<[Cc][Mm][Dd]>", " ") or ""
  for word in words:gmatch("%a+") do
    if accepts(word) then
      return true
    end
  end
  return false
end

-- Return why a write of a proposal is no command of the user that accepts; nil if it is one.
function session.why_no_write()
  if is_in_autocommand() then
    return "an autocommand saved it"
  end
  local began = session.focus.began()
  if command and began and command.began == began then
    return not accepts(command.text) and (":%s does not accept"):format(command.text:sub(1, 40)) or nil
  elseif (vim.o.autowrite or vim.o.autowriteall) and not is_mapping_of_write(session.focus.keys()) then
    return "'autowrite' saved it"
  end
  return nil
end
