-- Starts and stops the companion with Neovim (0.8 or newer). The companion attaches to this Neovim by its socket and does
-- the rest; while it is attached, its commands (:IsthmusDiffAccept, :IsthmusMention, :IsthmusAllow and others, see
-- COMMANDS_OF_COMPANION) replace those here. isthmus/terminal.lua has the agents' terminals.
--
--   require("isthmus").setup({      -- or: vim.g.isthmus = {
--     program = "isthmus",          -- the program, or a list with its first arguments
--     arguments = { "--no-selection" }, -- more arguments for `isthmus companion`
--     autostart = true,             -- false: only :IsthmusStart starts it
--     keys = "<leader>a",           -- the prefix of the mappings in MAPPINGS; without it there are none
--     terminal = { command = { "claude", "--permission-mode", "default" }, position = "right", size = 0.4 },
--     review = { layout = "tab" },  -- or: vim.g.isthmus_review = {...
--     changes = { quiet = 2.0 },    -- or: vim.g.isthmus_changes = {...
--   })

local M = {}
-- The first restart is quick, because agent CLIs reconnect once, after five seconds. Later ones follow while the companion
-- crashes within WELL_MS; after a longer run the delays begin anew.
local RESTART_MS, WELL_MS, SHOWN_BYTES = { 100, 1000, 2000, 3000, 4000 }, 5000, 4096

-- {mode, key after the prefix, what it runs, description}
local MAPPINGS = {
  { "n", "t", "<Cmd>IsthmusToggle<CR>", "Show or hide the agent's terminal" },
  { "n", "f", "<Cmd>IsthmusFocus<CR>", "Go to the agent's terminal, or back" },
  { "n", "p", ":IsthmusPrompt ", "Write a prompt" },
  { "n", "s", "<Cmd>IsthmusSend<CR>", "Send this file to the agent's terminal" },
  { "x", "s", ":IsthmusSend<CR>", "Send these lines to the agent's terminal" },
  { "n", "m", "<Cmd>IsthmusMention<CR>", "Point the attached agent to this file" },
  { "x", "m", ":IsthmusMention<CR>", "Point the attached agent to these lines" },
  { "n", "l", "<Cmd>IsthmusLog<CR>", "Show what agents and companion send each other" },
  { "n", "a", function() require("isthmus").decide(true) end, "Accept the proposed edit under the cursor" },
  { "n", "r", function() require("isthmus").decide(false) end, "Reject the proposed edit under the cursor" },
  { "n", "A", "<Cmd>IsthmusDiffAcceptAll<CR>", "Accept all proposed edits of this agent" },
  { "n", "R", "<Cmd>IsthmusDiffRejectAll<CR>", "Reject all proposed edits of this agent" },
  { "n", "ha", "<Cmd>IsthmusHunkAccept<CR>", "Accept the hunk under the cursor" },
  { "x", "ha", ":IsthmusHunkAccept<CR>", "Accept the hunks in these lines" },
  { "n", "hr", "<Cmd>IsthmusHunkReject<CR>", "Reject the hunk under the cursor" },
  { "x", "hr", ":IsthmusHunkReject<CR>", "Reject the hunks in these lines" },
  { "n", "c", "<Cmd>IsthmusChanges<CR>", "List what agents wrote" },
  { "n", "hk", "<Cmd>IsthmusKeep<CR>", "Keep what an agent wrote here" },
  { "x", "hk", ":IsthmusKeep<CR>", "Keep what agents wrote in these lines" },
  { "n", "hx", "<Cmd>IsthmusUndo<CR>", "Undo what an agent wrote here" },
  { "x", "hx", ":IsthmusUndo<CR>", "Undo what agents wrote in these lines" },
  { "n", "hu", "<Cmd>IsthmusRedo<CR>", "Take back the undo" },
}

local COMMANDS_OF_COMPANION = { -- and their options here
  IsthmusDiffAccept = {}, IsthmusDiffReject = {}, IsthmusAllow = {}, IsthmusRefuse = {},
  IsthmusDiffAcceptAll = { nargs = "?" }, IsthmusDiffRejectAll = { nargs = "?" },
  IsthmusMention = { range = true, nargs = "?" }, IsthmusHunkAccept = { range = true }, IsthmusHunkReject = { range = true },
}

local job -- while the companion runs
local wanted = false -- whether one is to run: the last that was asked for, while another one still ends
local stopping, leaving = false, false
local restarts = 0
local started_at -- of the companion, in ms
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

M.tell, M.setting = tell, setting

function M.program() -- a new list
  local program = setting("program", "isthmus")
  return type(program) == "table" and vim.deepcopy(program) or { program }
end

local function command_line()
  local line = M.program()
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

function M.is_attached()
  return next(_G.isthmus_sessions or {}) ~= nil
end

function M.is_running()
  return job ~= nil
end

function M.autostart()
  if setting("autostart", true) then
    M.start()
  end
end

-- Add options to vim.g.isthmus, and map the keys if a prefix is among them.
function M.setup(options)
  vim.g.isthmus = vim.tbl_deep_extend("force", vim.g.isthmus or {}, options or {})
  vim.g.isthmus_review = setting("review", vim.g.isthmus_review)
  vim.g.isthmus_changes = setting("changes", vim.g.isthmus_changes)
  local prefix = setting("keys", "")
  for _, mapping in ipairs(prefix ~= "" and MAPPINGS or {}) do
    local mode, key, act, description = unpack(mapping)
    vim.keymap.set(mode, prefix .. key, act, { desc = "Isthmus: " .. description })
  end
end

-- Accept or reject the review in the current window, and no other.
function M.decide(accepting)
  for _, session in pairs(_G.isthmus_sessions or {}) do
    if session.decide_here(accepting, true) then
      return
    end
  end
  tell("no proposed edit is under the cursor", vim.log.levels.WARN)
end

-- Offer a function to the agents: {name, description, schema (a JSON Schema as a table), run(arguments)}. What it returns
-- is the result; with `async = true` it calls reply(result) or reply(nil, problem), its second argument, later.
function M.tool(tool)
  local is_name = type(tool.name) == "string" and tool.name:match("^[%w_-]+$") and #tool.name <= 64
  if not (is_name and type(tool.description) == "string" and type(tool.run) == "function") then
    error("isthmus.tool: expected a name of letters, digits, _ and -, a description, and a function run", 2)
  end
  _G.isthmus_tools = _G.isthmus_tools or {}
  _G.isthmus_tools[tool.name] = vim.tbl_extend("keep", tool, { schema = {} })
  for _, session in pairs(_G.isthmus_sessions or {}) do
    session.tools_changed()
  end
end

-- Return the titles of the attached agents, for a status line.
function M.agents()
  local titles = {}
  for _, session in pairs(_G.isthmus_sessions or {}) do
    vim.list_extend(titles, vim.tbl_values(session.agents))
  end
  table.sort(titles)
  return titles
end

-- Point the attached agents to a file or folder, or to lines of it (from 1), as a picker of your own may do. Return whether
-- a companion is attached.
function M.mention(path, first, last)
  local _, session = next(_G.isthmus_sessions or {})
  if session then
    session.mention(vim.fn.fnamemodify(path, ":p"), first and first - 1, first and (last or first) - 1)
  end
  return session ~= nil
end

function M.status()
  local waiting, agents = 0, M.agents()
  for _, session in pairs(_G.isthmus_sessions or {}) do
    waiting = waiting + session.count_reviews()
  end
  local companion = M.is_attached() and "agents can find this Neovim" or M.is_running() and "the companion is starting"
    or "no companion runs; :IsthmusStart starts one"
  local attached = #agents > 0 and table.concat(agents, ", ") or "none"
  tell(("%s; attached: %s; reviews that wait: %d"):format(companion, attached, waiting))
end

local function in_terminal(name, ...)
  require("isthmus.terminal")[name](...)
end

function M.define_commands()
  local function define(name, act, options)
    vim.api.nvim_create_user_command(name, act, vim.tbl_extend("force", { force = true }, options or {}))
  end
  local function nobody()
    tell("no companion is attached to this Neovim; :IsthmusStart starts one", vim.log.levels.WARN)
  end
  define("IsthmusChanges", nobody, { nargs = "?" })
  for _, name in ipairs({ "IsthmusKeep", "IsthmusUndo", "IsthmusRedo" }) do
    define(name, nobody, { nargs = "*", range = true, bang = true })
  end
  define("IsthmusStart", M.start, { desc = "Let agent CLIs find this Neovim" })
  define("IsthmusStop", M.stop, { desc = "End the companion of this Neovim" })
  define("IsthmusTerminal", function(command) in_terminal("open", command.fargs) end, {
    nargs = "*", complete = "shellcmd", desc = "Start an agent in a terminal, or go to it",
  })
  define("IsthmusToggle", function() in_terminal("toggle") end, { desc = "Show or hide the agent's terminal" })
  define("IsthmusFocus", function() in_terminal("focus") end, { desc = "Go to the agent's terminal, or back" })
  define("IsthmusPrompt", function(command) in_terminal("prompt", command.args, command.bang) end, {
    nargs = "+", bang = true, desc = "Put a text into the agent's prompt; with ! also press Enter",
  })
  define("IsthmusLog", function() in_terminal("log") end, { desc = "Show what agents and companion send each other" })
  define("IsthmusSend", function(command) in_terminal("send_lines", command) end, {
    nargs = "?", range = true, complete = function() return { "text" } end,
    desc = "Send this file or these lines to the agent's terminal, as a mention or as text",
  })
  define("IsthmusModel", function(command) in_terminal("choose_model", command.args) end, {
    nargs = "?", complete = function() return require("isthmus.terminal").models() end,
    desc = "Choose a model, and start the agent with it in a terminal",
  })
  define("IsthmusStatus", M.status, { desc = "Say whether agents can find this Neovim, and what waits" })
  for name, options in pairs(COMMANDS_OF_COMPANION) do
    define(name, nobody, options)
  end
  if not M.watching then
    M.watching = true
    vim.api.nvim_create_autocmd("User", {
      pattern = { "IsthmusDiffOpened", "IsthmusDiffClosed" },
      callback = function(event)
        if setting("terminal", {}).size_in_review then
          in_terminal("fit", event.match == "IsthmusDiffOpened")
        end
      end,
    })
    vim.api.nvim_create_autocmd("VimLeavePre", {
      callback = function()
        leaving = true
        M.stop()
      end,
    })
  end
end

return M
