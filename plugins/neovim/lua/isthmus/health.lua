-- `:checkhealth isthmus`: whether agents can find this Neovim, and what is missing if they cannot. It starts nothing but
-- `isthmus --version`.

local isthmus = require("isthmus")
local health = vim.health or require("health")
local start = health.start or health.report_start
local ok, warn = health.ok or health.report_ok, health.warn or health.report_warn
local fail, info = health.error or health.report_error, health.info or health.report_info

local M = {}

function M.check()
  start("Isthmus")
  local program = isthmus.program()
  if vim.fn.executable(program[1]) == 0 then
    fail(("there is no program %q; install Isthmus, or set vim.g.isthmus.program"):format(program[1]))
  else
    local version = vim.trim(vim.fn.system(vim.list_extend(vim.deepcopy(program), { "--version" })))
    local say = vim.v.shell_error == 0 and ok or fail
    say(("%s: %s"):format(table.concat(program, " "), version:match("[^\n]*$")))
  end
  if isthmus.is_attached() then
    ok("a companion is attached: agents can find this Neovim")
  elseif isthmus.is_running() then
    warn("the companion is starting")
  else
    fail("no companion runs; :IsthmusStart starts one, and :IsthmusLog shows what it says")
  end
  local agents = isthmus.agents()
  local nobody = "no agent is attached; `isthmus doctor` in its terminal says why"
  info(#agents > 0 and "attached agents: " .. table.concat(agents, ", ") or nobody)
  local command = isthmus.setting("terminal", {}).command or "claude"
  local agent = type(command) == "table" and command[1] or vim.split(command, " +")[1]
  if vim.fn.executable(agent) == 1 then
    ok((":IsthmusTerminal starts %s"):format(vim.fn.exepath(agent)))
  else
    warn(("there is no program %q for :IsthmusTerminal; set terminal.command"):format(agent))
  end
  if vim.fn.has("nvim-0.11") == 0 or not pcall(require, "ffi") then
    info("before Neovim 0.11, or without LuaJIT, no key counts while another program is connected to Neovim's socket")
  end
end

return M
