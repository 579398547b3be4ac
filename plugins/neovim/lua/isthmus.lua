-- Starts and stops the companion with Neovim (0.8 or newer). The companion attaches to this Neovim by its socket and does
-- the rest; while it is attached, its commands (:IsthmusDiffAccept, :IsthmusDiffReject, :IsthmusMention, :IsthmusAllow,
-- :IsthmusRefuse) replace those here.
--
--   vim.g.isthmus = {
--     program = "isthmus",          -- the program, or a list with its first arguments
--     arguments = { "--no-selection" }, -- more arguments for `isthmus companion`
--     autostart = true,             -- false: only :IsthmusStart starts it
--   }

local M = {}
-- The first restart is quick, because agent CLIs reconnect once, after five seconds. Later ones follow while the companion
-- crashes within WELL_MS; after a longer run the delays begin anew.
local RESTART_MS, WELL_MS, SHOWN_BYTES = { 100, 1000, 2000, 3000, 4000 }, 5000, 4096

local job -- while the companion runs
local wanted = false -- whether one is to run: the last that was asked for, while another one still ends
local stopping, leaving = false, false
local restarts, started_at = 0, 0
local said = "" -- the end of what the companion wrote to its standard error

local function tell(text, level)
  vim.schedule(function()
    vim.notify("Isthmus: " .. text, level or vim.log.levels.INFO)
  end)
end

local function setting(name, default)
  local value = (vim.g.isthmus or {})[name]
  if value == nil then
    return default
  end
  return value
end

local function command_line()
  local program = setting("program", "isthmus")
  local line = type(program) == "table" and vim.deepcopy(program) or { program }
  local address = vim.v.servername ~= "" and vim.v.servername or vim.fn.serverstart()
  vim.list_extend(line, { "companion", "--editor", "nvim", "--address", address })
  return vim.list_extend(line, setting("arguments", {}))
end

local start_if_wanted

local function ended(code)
  job = nil
  if leaving then
    return
  elseif stopping then
    stopping = false
    start_if_wanted()
    return
  end
  local last = vim.trim(said):match("[^\n]*$"):gsub("^isthmus: ", "")
  local what = ("the companion ended with code %d%s"):format(code, last ~= "" and (" (%s)"):format(last) or "")
  if vim.loop.now() - started_at > WELL_MS then
    restarts = 0
  end
  if code == 0 or restarts >= #RESTART_MS then
    tell(what .. "; :IsthmusStart starts it again", vim.log.levels.WARN)
    return
  end
  restarts = restarts + 1
  tell(what .. "; starting it again", vim.log.levels.WARN)
  vim.defer_fn(start_if_wanted, RESTART_MS[restarts])
end

start_if_wanted = function()
  if job or leaving or not wanted then
    return
  end
  local line = command_line()
  if vim.fn.executable(line[1]) == 0 then
    tell(("there is no program %q; install Isthmus, or set vim.g.isthmus.program"):format(line[1]), vim.log.levels.ERROR)
    return
  end
  said, started_at = "", vim.loop.now()
  local started = vim.fn.jobstart(line, {
    on_stderr = function(_, data)
      said = (said .. table.concat(data, "\n")):sub(-SHOWN_BYTES)
    end,
    on_exit = function(_, code)
      ended(code)
    end,
  })
  job = started > 0 and started or nil
end

function M.start()
  wanted = true
  start_if_wanted()
end

function M.stop()
  wanted, restarts = false, 0
  if job then
    stopping = true
    vim.fn.jobstop(job) -- SIGTERM: it closes its views and removes its files
  end
end

function M.is_running()
  return job ~= nil
end

function M.autostart()
  if setting("autostart", true) then
    M.start()
  end
end

function M.define_commands()
  local function define(name, act, options)
    vim.api.nvim_create_user_command(name, act, vim.tbl_extend("force", { force = true }, options or {}))
  end
  local function nobody()
    tell("no companion is attached to this Neovim; :IsthmusStart starts one", vim.log.levels.WARN)
  end
  define("IsthmusStart", M.start, { desc = "Let agent CLIs find this Neovim" })
  define("IsthmusStop", M.stop, { desc = "End the companion of this Neovim" })
  for _, name in ipairs({ "IsthmusDiffAccept", "IsthmusDiffReject", "IsthmusAllow", "IsthmusRefuse" }) do
    define(name, nobody)
  end
  define("IsthmusMention", nobody, { range = true })
  if not M.watching then
    M.watching = true
    vim.api.nvim_create_autocmd("VimLeavePre", {
      callback = function()
        leaving = true
        M.stop()
      end,
    })
  end
end

return M
