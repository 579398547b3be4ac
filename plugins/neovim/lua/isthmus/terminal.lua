-- Terminals of agent CLIs in one window of Neovim: each command has its own, and text goes to the one used last.
--
-- Text is sent as a bracketed paste, which an agent takes as text: nothing in it is a key. It waits until the agent
-- turns bracketed paste on, because before that each line would be entered. Nobody's file is read or written here.
--
--   vim.g.isthmus = { terminal = {
--     command = { "claude", "--permission-mode", "default" },  -- or a string; the default is "claude", which does not ask
--     position = "right",  -- or "left", "top", "bottom", "float", "external" (external.lua), "none", function(buffer)
--     size = 0.4,          -- of a split: a part of the screen; from 1 on columns or lines
--     size_in_review = nil, -- the same while a review is open
--     float = { width = 0.8, height = 0.8, border = "rounded" }, -- and more options of nvim_open_win
--     external = nil,      -- how your terminal program is started, such as "alacritty -e %s"
--     cwd = nil,           -- the agents' folder; "git": the repository of the file; function({file, folder, cwd})
--     env = {},            -- more variables for agents
--     auto_close = true,   -- close the window when the agent ends well
--     auto_insert = true,  -- type at once when the terminal gets the focus
--     focus_after_send = false, -- go to the terminal after :IsthmusSend and :IsthmusPrompt
--     newline_key = "<S-CR>",   -- a new line in the prompt instead of sending it; false: none
--     models = { "opus", ... }, -- what :IsthmusModel offers
--   } }

local isthmus = require("isthmus")
local window_of_agents = require("isthmus.window")
local api, fn = vim.api, vim.fn
local tell, WARN = isthmus.tell, vim.log.levels.WARN

local M = {}
local DEFAULTS = {
  command = "claude", position = "right", size = 0.4, env = {},
  auto_close = true, auto_insert = true, newline_key = "<S-CR>",
}
local MODELS = { claude = { "opus", "opus[1m]", "sonnet", "sonnet[1m]", "haiku", "default" } } -- by program
local NEW_LINE = "\27\r" -- Alt-Enter, which agents take as a new line in the prompt
local COMPANION_MS, LOOK_MS = 5000, 50 -- the longest wait for the companion's variables, and between two looks
local PASTE_MS = 30000 -- the longest wait of a text for an agent that starts or is busy
local MOST_NAMES = 100 -- of terminals of the same program
local ENTER_MS = 150 -- between a text and Enter, which agents take as a part of the text when it comes at once
local MAX_BYTES = 1024 * 1024 -- of the texts that wait
-- Neovim gives its address to each of its jobs, whatever their `env`; with it, an agent could press the user's keys.
local WITHOUT_ADDRESS = { "sh", "-c", 'unset NVIM NVIM_LISTEN_ADDRESS; exec "$@"', "agent" }
local TREES = { -- file types; the companion's script knows the files in them
  netrw = true, NvimTree = true, ["neo-tree"] = true, oil = true, minifiles = true, dirvish = true,
  snacks_picker_list = true, snacks_picker_input = true,
}
local TAIL = 32 -- bytes of output that are kept, in which a control sequence may have begun

local terminals = {} -- command line -> terminal, while its program runs
local last -- the terminal that was used last

local function setting(name)
  local value = isthmus.setting("terminal", {})[name]
  return value == nil and DEFAULTS[name] or value
end

local function window_here() -- the one of this tab page that shows an agent
  for _, window in ipairs(api.nvim_tabpage_list_wins(0)) do
    if vim.b[api.nvim_win_get_buf(window)].isthmus_agent then
      return window
    end
  end
end

local function show(terminal)
  last = terminal
  local window = window_here()
  if window then
    api.nvim_win_set_buf(window, terminal.buffer)
    return window
  end
  return window_of_agents.open(terminal.buffer, setting("position"), setting("size"), setting("float"))
end

local function type_on() -- in the terminal that has the focus
  if setting("auto_insert") then
    vim.cmd("startinsert")
  end
end

-- Return the folder in which agents start.
local function folder()
  local cwd, file = setting("cwd"), vim.bo.buftype == "" and api.nvim_buf_get_name(0) or ""
  local here = file ~= "" and fn.fnamemodify(file, ":p:h") or fn.getcwd()
  if type(cwd) == "function" then
    cwd = cwd({ file = file ~= "" and file or nil, folder = here, cwd = fn.getcwd() })
  elseif cwd == "git" then
    local found = vim.fs.find(".git", { path = here, upward = true })[1]
    cwd = found and vim.fs.dirname(found)
  end
  cwd = cwd and fn.fnamemodify(fn.expand(cwd), ":p"):gsub("(.)/$", "%1")
  if cwd and fn.isdirectory(cwd) == 0 then
    tell(("there is no folder %s; the agent starts in %s"):format(cwd, fn.getcwd()), WARN)
    cwd = nil
  end
  return cwd or fn.getcwd()
end

local function deliver(terminal)
  local first = terminal.waiting[1]
  if terminal.is_sending or not (first and terminal.takes_pastes) then
    return
  end
  terminal.is_sending = true
  table.remove(terminal.waiting, 1)
  fn.chansend(terminal.job, "\27[200~" .. first.text .. "\27[201~")
  vim.defer_fn(function()
    if first.enter and terminals[terminal.name] == terminal then
      fn.chansend(terminal.job, "\r")
    end
    terminal.is_sending = false
    deliver(terminal)
  end, first.enter and ENTER_MS or 0)
end

local function note_output(terminal, data)
  local text = terminal.tail .. table.concat(data, "\n")
  local on = text:match("^.*()\27%[%?[%d;]*2004[%d;]*h")
  local off = text:match("^.*()\27%[%?[%d;]*2004[%d;]*l")
  if on or off then
    terminal.takes_pastes = (on or 0) > (off or 0)
  end
  terminal.tail = text:sub(-TAIL)
  deliver(terminal)
end

local function ended(terminal, code)
  terminals[terminal.name] = nil
  last = last ~= terminal and last or select(2, next(terminals))
  if not api.nvim_buf_is_valid(terminal.buffer) or vim.v.exiting ~= vim.NIL then
    return
  elseif code == 0 and setting("auto_close") then
    api.nvim_buf_delete(terminal.buffer, { force = true })
  else -- what it said stays readable until another agent is shown in its place
    vim.bo[terminal.buffer].bufhidden = "wipe"
    tell(("%s ended with code %d"):format(terminal.name, code), code == 0 and vim.log.levels.INFO or WARN)
  end
end

local function run_in(buffer, line, options)
  return api.nvim_buf_call(buffer, function()
    if fn.has("nvim-0.11") == 0 then
      return fn.termopen(line, options)
    end
    options.term = true
    return fn.jobstart(line, options)
  end)
end

-- Give the terminal a short name, in place of Neovim's, by which a saved session would start a shell.
local function rename(terminal, line)
  local program, former = fn.fnamemodify(line[1], ":t"), api.nvim_buf_get_name(terminal.buffer)
  for number = 1, MOST_NAMES do
    local name = number == 1 and ("%s (agent)"):format(program) or ("%s (agent %d)"):format(program, number)
    if pcall(api.nvim_buf_set_name, terminal.buffer, name) then
      break
    end
  end
  for _, buffer in ipairs(api.nvim_list_bufs()) do -- Neovim keeps the former name in a buffer of its own
    if buffer ~= terminal.buffer and api.nvim_buf_get_name(buffer) == former then
      pcall(api.nvim_buf_delete, buffer, { force = true })
    end
  end
end

local function without_address()
  return fn.executable("sh") == 1 and vim.deepcopy(WITHOUT_ADDRESS) or {}
end

local function run(terminal, line)
  if not api.nvim_buf_is_valid(terminal.buffer) then
    terminals[terminal.name] = nil
    return
  end
  terminal.job = run_in(terminal.buffer, vim.list_extend(without_address(), line), {
    cwd = terminal.folder,
    env = next(setting("env")) and setting("env") or nil,
    on_stdout = function(_, data) note_output(terminal, data) end,
    on_exit = function(_, code) ended(terminal, code) end,
  })
  rename(terminal, line)
  require("isthmus.paste").watch()
  local newline = setting("newline_key")
  if newline then
    vim.keymap.set("t", newline, function() fn.chansend(terminal.job, NEW_LINE) end, {
      buffer = terminal.buffer, desc = "Isthmus: Begin a new line in the prompt",
    })
  end
  if api.nvim_get_current_buf() == terminal.buffer then
    type_on()
  end
end

-- Call a function as soon as new programs find this Neovim by their variables, or say that they may not.
local function with_companion(name, act)
  local deadline = vim.loop.now() + COMPANION_MS
  if not _G.isthmus_environment then
    isthmus.start()
  end
  local function look()
    if _G.isthmus_environment then
      act()
    elseif isthmus.is_running() and vim.loop.now() < deadline then
      vim.defer_fn(look, LOOK_MS)
    else
      tell(("no companion is ready, so %s may not find this Neovim"):format(name), WARN)
      act()
    end
  end
  look()
end

-- Show the terminal of a command and give it the focus; start the command unless it runs. Without one: the agent used
-- last, else the setting.
function M.open(line)
  local command = setting("command")
  line = line and #line > 0 and line or not last and (type(command) == "table" and command or vim.split(command, " +"))
  local name = line and table.concat(line, " ")
  local terminal = line and terminals[name] or not line and last or nil
  if terminal then
    api.nvim_set_current_win(show(terminal))
    if terminal.job then
      type_on()
    end
    return
  elseif setting("position") == "none" then
    return tell("terminals are off (terminal.position is \"none\"): start the agent in a terminal of your own", WARN)
  elseif fn.executable(line[1]) == 0 then
    tell(("there is no program %q; name another one: :IsthmusTerminal COMMAND"):format(line[1]), vim.log.levels.ERROR)
    return
  end
  if setting("position") == "external" then
    local place, external, env = folder(), setting("external"), setting("env")
    return with_companion(name, function()
      require("isthmus.external").run(line, place, external, without_address(), next(env) and env or nil)
    end)
  end
  terminal = { name = name, folder = folder(), waiting = {}, tail = "" }
  for _, part in ipairs(line) do -- perhaps behind `isthmus companion exec --`
    terminal.is_claude = terminal.is_claude or fn.fnamemodify(part, ":t") == "claude"
  end
  terminal.buffer = api.nvim_create_buf(false, false)
  vim.b[terminal.buffer].isthmus_agent = name
  vim.bo[terminal.buffer].bufhidden, vim.bo[terminal.buffer].modifiable = "hide", false -- no keys before the agent
  terminals[name] = terminal
  api.nvim_set_current_win(show(terminal))
  with_companion(name, function() run(terminal, line) end)
end

-- Start the agent of the setting with a model, which the user chooses unless it is named.
function M.choose_model(model)
  local command = setting("command")
  local line = type(command) == "table" and vim.deepcopy(command) or vim.split(command, " +")
  local function open(chosen)
    if chosen and chosen ~= "" then
      M.open(vim.list_extend(line, { "--model", chosen }))
    end
  end
  local models, prompt = M.models(), "Model of " .. fn.fnamemodify(line[1], ":t")
  if model ~= "" then
    open(model)
  elseif #models == 0 then
    vim.ui.input({ prompt = prompt .. ": " }, open)
  else
    vim.ui.select(models, { prompt = prompt }, open)
  end
end

function M.models()
  local command = setting("command")
  local line = type(command) == "table" and command or vim.split(command, " +")
  return setting("models") or MODELS[fn.fnamemodify(line[1], ":t")] or {}
end

-- Give the terminal in this tab page the size that it has while a review is open, or the usual one.
function M.fit(has_review)
  local window, position = window_here(), setting("position")
  local size = has_review and setting("size_in_review") or setting("size")
  if window and setting("size_in_review") and type(position) == "string" and position ~= "float" then
    window_of_agents.resize(window, position, size)
  end
end

-- Show what goes over the wire between the companion and its agents, in a window that ends with it.
function M.log()
  local line = vim.list_extend(isthmus.program(), { "ide", "log", "--follow" })
  if fn.executable(line[1]) == 0 then
    return tell(("there is no program %q"):format(line[1]), WARN)
  end
  vim.cmd("botright new")
  local buffer = api.nvim_get_current_buf()
  vim.bo[buffer].bufhidden = "wipe"
  run_in(buffer, line, vim.empty_dict())
  vim.cmd("normal! G") -- the newest line stays in view
end

function M.toggle()
  local window = window_here()
  if not window then
    M.open()
  else
    vim.cmd("stopinsert")
    if not pcall(api.nvim_win_hide, window) then
      tell("this is the last window", WARN)
    end
  end
end

-- Go to the terminal; from there back to where the user was.
function M.focus()
  if api.nvim_get_current_win() == window_here() then
    vim.cmd("stopinsert")
    vim.cmd("wincmd p")
  else
    M.open()
  end
end

-- Put a text into the prompt of the agent used last; `enter` sends the prompt. Return whether there is an agent.
function M.send(text, enter)
  local terminal = last
  if not terminal then
    return false
  end
  -- Control characters would be keys, or end the paste.
  text = text:gsub("\r\n?", "\n"):gsub("[%z\1-\8\11-\31\127]", ""):gsub("\194[\128-\159]", "")
  local bytes = #text
  for _, other in ipairs(terminal.waiting) do
    bytes = bytes + #other.text
  end
  if bytes > MAX_BYTES then
    tell(("not sent: at most %d KiB can wait for %s"):format(MAX_BYTES / 1024, terminal.name), WARN)
    return true
  end
  if not window_here() then
    local here = api.nvim_get_current_win()
    show(terminal)
    api.nvim_set_current_win(here)
  end
  local sent = { text = text, enter = enter }
  table.insert(terminal.waiting, sent)
  deliver(terminal)
  vim.defer_fn(function()
    for index, other in ipairs(terminal.waiting) do
      if other == sent then
        table.remove(terminal.waiting, index)
        tell(("not sent: %s took no text for %d s"):format(terminal.name, PASTE_MS / 1000), WARN)
      end
    end
  end, PASTE_MS)
  return true
end

-- Return how an agent reads of these lines by itself: Claude Code knows @FILE#L1-9, all know @FILE.
local function mention(terminal, name, first, last_line)
  local path = name:sub(1, #terminal.folder + 1) == terminal.folder .. "/" and name:sub(#terminal.folder + 2) or name
  if terminal.is_claude then
    path = first and ("%s#L%d-%d"):format(path, first, last_line) or path
    return path:find("%s") and ('@"%s" '):format(path) or ("@%s "):format(path)
  end
  local lines = first and ("lines %d-%d "):format(first, last_line) or ""
  return ("@%s %s"):format(path:gsub("%s", "\\%0"), lines)
end

local function sent(path, first, last_line)
  local data = { path = path, first = first, last = last_line }
  vim.schedule(function() api.nvim_exec_autocmds("User", { pattern = "IsthmusSent", modeline = false, data = data }) end)
  if setting("focus_after_send") then
    M.open()
  end
end

-- Send the files that are chosen in a file tree. Return false if this is none.
local function send_from_tree(command)
  local _, session = next(_G.isthmus_sessions or {})
  if not session then
    if TREES[vim.bo.filetype] then
      tell("no companion is attached to this Neovim, which knows about files in trees; :IsthmusStart starts one", WARN)
    end
    return TREES[vim.bo.filetype] or false
  end
  local chosen, problem = session.chosen_in_tree(command)
  if problem then
    tell(problem, WARN)
  elseif chosen and last then
    local parts = vim.tbl_map(function(path) return mention(last, path) end, chosen)
    M.send(table.concat(parts))
    for _, path in ipairs(chosen) do
      sent(path)
    end
  elseif chosen then
    vim.cmd((command.range == 0 and "" or ("%d,%d"):format(command.line1, command.line2)) .. "IsthmusMention")
  end
  return chosen ~= nil or problem ~= nil
end

-- Send these lines of the current buffer to the agent used last: as a mention of the file if it has them, else as text.
-- Without a terminal, the mention goes to the agent that is attached.
function M.send_lines(command)
  if command.args ~= "text" and send_from_tree(command) then
    return
  end
  local name, all = api.nvim_buf_get_name(0), command.range == 0
  local is_saved = vim.bo.buftype == "" and not vim.bo.modified and fn.filereadable(name) == 1
  if is_saved and command.args ~= "text" then
    if last then
      local first, last_line = not all and command.line1 or nil, not all and command.line2 or nil
      M.send(mention(last, name, first, last_line))
      sent(name, first, last_line)
    else
      vim.cmd((all and "" or ("%d,%d"):format(command.line1, command.line2)) .. "IsthmusMention")
    end
    return
  end
  local lines = api.nvim_buf_get_lines(0, all and 0 or command.line1 - 1, all and -1 or command.line2, false)
  local place = ("%s, from line %d:\n"):format(fn.fnamemodify(name, ":."), all and 1 or command.line1)
  M.prompt((name ~= "" and place or "") .. table.concat(lines, "\n") .. "\n")
end

function M.prompt(text, enter)
  if not M.send(text, enter) then
    tell("no agent runs in a terminal of this Neovim; :IsthmusTerminal starts one", WARN)
  elseif setting("focus_after_send") then
    M.open()
  end
end

return M
