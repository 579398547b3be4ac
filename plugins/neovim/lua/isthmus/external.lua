-- Agents in a terminal program of their own, outside of Neovim: `terminal.external` says how that is started.
--
--   external = "alacritty -e %s"                           -- %s is the agent's command line
--   external = "wezterm start --cwd %s -- %s"              -- the first of two is the folder
--   external = { "kitty", "--" }                           -- the command line is added to it
--   external = function(line, folder) return {...} end     -- a list or a string for the shell

local isthmus = require("isthmus")
local fn = vim.fn

local M = {}
local running = {} -- command line -> job

local function quoted(line)
  return table.concat(vim.tbl_map(fn.shellescape, line), " ")
end

-- Return the command line of the terminal program, or nil and why there is none.
local function command_for(line, folder, external)
  local command = external
  if type(external) == "function" then
    command = external(line, folder)
  elseif type(external) == "table" then
    command = vim.list_extend(vim.deepcopy(external), line)
  elseif type(external) == "string" then
    local _, places = external:gsub("%%s", "")
    if places ~= 1 and places ~= 2 then
      return nil, "terminal.external needs %s where the agent's command line belongs, such as \"alacritty -e %s\""
    end
    local values = places == 2 and { fn.shellescape(folder), quoted(line) } or { quoted(line) }
    local index = 0
    command = external:gsub("%%s", function()
      index = index + 1
      return values[index]
    end)
  end
  if type(command) == "string" and command ~= "" then
    return { vim.o.shell, vim.o.shellcmdflag, command }
  elseif type(command) == "table" and #command > 0 then
    return command
  end
  return nil, "set terminal.external to the command of your terminal program, such as \"alacritty -e %s\""
end

-- Start the agent `line` in `folder`. `prefix` is put before the terminal program, `environment` is added to its variables.
function M.run(line, folder, external, prefix, environment)
  local name = table.concat(line, " ")
  if running[name] then
    return isthmus.tell(name .. " runs already, in a terminal of its own")
  end
  local command, problem = command_for(line, folder, external)
  if not command then
    return isthmus.tell(problem, vim.log.levels.ERROR)
  elseif fn.executable(command[1]) == 0 then
    return isthmus.tell(("there is no program %q"):format(command[1]), vim.log.levels.ERROR)
  end
  local job = fn.jobstart(vim.list_extend(vim.deepcopy(prefix), command), {
    detach = true,
    cwd = folder,
    env = environment,
    on_exit = function(_, code)
      running[name] = nil
      if code ~= 0 and vim.v.exiting == vim.NIL then
        isthmus.tell(("the terminal of %s ended with code %d"):format(name, code), vim.log.levels.WARN)
      end
    end,
  })
  running[name] = job > 0 and job or nil
end

return M
