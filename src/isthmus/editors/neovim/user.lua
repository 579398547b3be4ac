-- Commands of the user while a companion is attached, and yes-or-no questions in small windows. Argument: the session
-- that session.lua made and review.lua completed.
--
-- The commands act on all attached companions. An answer is sent once, as a notification; after close_question none
-- follows.

local session = ...
local api, fn = vim.api, vim.fn
local notify, tell, focus = session.notify, session.tell, session.focus

local NOT_USERS = "the question is not answered: %s; once more answers"
local COMMANDS = {
  IsthmusMention = "Show this file, or these lines, to the agent",
  IsthmusDiffAccept = "Accept the proposed edit in this window, or the only one that waits",
  IsthmusDiffReject = "Reject the proposed edit in this window, or the only one that waits",
  IsthmusHunkAccept = "Accept the hunk under the cursor, or those in a range: they get the proposed lines",
  IsthmusHunkReject = "Reject the hunk under the cursor, or those in a range: they get the lines on disk",
  IsthmusAllow = "Answer the agent's question with yes",
  IsthmusRefuse = "Answer the agent's question with no",
}

local UNREAD = "not all of the question was on the screen: read on, and answer at its end"
local PAGE_MS = 700 -- in which a held key goes no page further, and answers nothing
local CONTINUED = "\226\134\179 " -- begins the rest of a line that is shown in pieces

local questions = {} -- id -> view with its buffer, while nobody has answered
local oldest = {} -- their ids in order

local function sessions(act) -- whether one of them had something to do
  local done = false
  for _, each in pairs(_G.isthmus_sessions) do
    done = act(each) or done
  end
  return done
end

-- Questions ----------------------------------------------------------------------------------------------------------

local function forget(id)
  questions[id] = nil
  for index, other in ipairs(oldest) do
    if other == id then
      table.remove(oldest, index)
      break
    end
  end
end

local function close(id)
  local question = questions[id]
  forget(id)
  if question and api.nvim_buf_is_valid(question.buffer) then
    pcall(api.nvim_buf_delete, question.buffer, { force = true })
  end
end

local function answer(id, yes)
  if questions[id] then
    notify("isthmus", "answered", id, yes)
    close(id)
  end
end

function session.answer_oldest(yes)
  local id = oldest[1]
  local reason = id and focus.why_not_users()
  if reason then
    tell(NOT_USERS:format(reason))
  elseif id and not (yes and questions[id].reads_on()) then
    answer(id, yes)
  end
  return id ~= nil
end

local function in_pieces(text, width) -- the lines of a text; one that does not fit into a small window is split
  local lines = {}
  for _, line in ipairs(vim.split(text, "\n", { plain = true })) do
    local rest, begin = line, ""
    while fn.strdisplaywidth(rest) > 2 * width do
      lines[#lines + 1] = begin .. fn.strcharpart(rest, 0, width)
      rest, begin = fn.strcharpart(rest, width), CONTINUED
    end
    lines[#lines + 1] = begin .. rest
  end
  return lines
end

function session.ask(id, title, text)
  local lines = in_pieces(text, math.max(20, vim.o.columns - 4))
  local hint = "y yes   n no   (or :IsthmusAllow, :IsthmusRefuse)"
  local width = math.max(fn.strdisplaywidth(title), fn.strdisplaywidth(hint))
  for _, line in ipairs(lines) do
    width = math.max(width, fn.strdisplaywidth(line))
  end
  width = math.max(20, math.min(width, vim.o.columns - 4))
  local shown = { (title:gsub("\n", " ")), "" }
  vim.list_extend(shown, lines)
  vim.list_extend(shown, { "", hint })
  local rows = 0
  for _, line in ipairs(shown) do
    rows = rows + math.max(1, math.ceil(fn.strdisplaywidth(line) / width))
  end
  local height = math.max(3, math.min(rows, math.floor(vim.o.lines * 0.6)))
  local buffer = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buffer, 0, -1, false, shown)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].bufhidden = "wipe"
  api.nvim_buf_set_name(buffer, "isthmus://question/" .. id)
  local question = { buffer = buffer }
  local function map(keys, act)
    for _, key in ipairs(keys) do
      vim.keymap.set("n", key, function()
        if question.is_front() then
          act()
        else -- the key went back to where the user was, and has another meaning there
          api.nvim_feedkeys(api.nvim_replace_termcodes(key, true, false, true), "imt", false)
        end
      end, { buffer = buffer, nowait = true })
    end
  end
  map({ "y", "Y" }, function()
    local reason = focus.why_not_users()
    if reason or focus.why_not(question) then
      return tell(reason and NOT_USERS:format(reason) or "read the question first; then y once more")
    end
    if not question.reads_on() then
      answer(id, true)
    end
  end)
  map({ "n", "N", "q", "<Esc>" }, function()
    local reason = focus.why_not_users()
    if reason then
      return tell(NOT_USERS:format(reason))
    end
    answer(id, false)
  end)
  -- Keys that are under way must not answer: see focus.lua.
  local enter = focus.may_come()
  question.came_from, question.from_terminal = api.nvim_get_current_win(), api.nvim_get_mode().mode == "t"
  local row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1)
  local column = math.max(0, math.floor((vim.o.columns - width) / 2))
  local window = focus.by_us(api.nvim_open_win, buffer, enter, {
    relative = "editor", row = row, col = column, width = width, height = height,
    style = "minimal", border = "rounded", zindex = 60,
  })
  vim.wo[window].wrap = true
  vim.wo[window].scrolloff = 0
  questions[id] = question
  local seen = 0 -- all lines up to this one were on the screen
  local function look()
    if not api.nvim_win_is_valid(window) then
      return
    end
    local first, last = fn.line("w0", window), fn.line("w$", window)
    local column = math.max(1, #(shown[last] or ""))
    if last > first and fn.screenpos(window, last, column).row == 0 then
      last = last - 1 -- only its beginning is on the screen
    end
    if first <= seen + 1 then
      seen = math.max(seen, last)
    end
  end
  local paged_at = -math.huge
  function question.reads_on() -- whether a part was not on the screen yet; it is then
    local now = (vim.uv or vim.loop).hrtime() / 1e6
    local is_held = now - paged_at < PAGE_MS
    look()
    if is_held then
      paged_at = now
      return true
    elseif seen >= #shown then
      return false
    end
    paged_at = now
    tell(UNREAD)
    if api.nvim_win_is_valid(window) then
      api.nvim_win_call(window, function()
        fn.winrestview({ topline = seen + 1, lnum = seen + 1, col = 0 })
      end)
    end
    return true
  end
  api.nvim_create_autocmd("WinScrolled", { group = session.group, pattern = tostring(window), callback = look })
  function question.is_open()
    return questions[id] == question
  end
  function question.is_front()
    return api.nvim_get_current_buf() == buffer
  end
  function question.to_front()
    if api.nvim_win_is_valid(window) then
      api.nvim_set_current_win(window)
    end
  end
  function question.ready() end
  function question.returned()
    if question.is_open() then
      tell(title .. " - :IsthmusAllow or :IsthmusRefuse")
    end
  end
  api.nvim_create_autocmd("WinEnter", { group = session.group, buffer = buffer, callback = function()
    focus.entered(question)
  end })
  api.nvim_create_autocmd("WinLeave", { group = session.group, buffer = buffer, callback = function()
    focus.left(question)
  end })
  oldest[#oldest + 1] = id
  api.nvim_create_autocmd("BufWipeout", {
    group = session.group,
    buffer = buffer,
    callback = function() -- closed by the user in any way: a no
      if not questions[id] then
        return
      end
      forget(id) -- Neovim itself removes the buffer
      if not focus.why_not_users(true) then
        return notify("isthmus", "answered", id, false)
      end
      vim.schedule(function()
        if _G.isthmus_sessions[session.channel] == session then
          session.ask(id, title, text)
        end
      end)
    end,
  })
  if enter then
    focus.came(question)
  else
    session.message(title .. " - :IsthmusAllow or :IsthmusRefuse")
    focus.wait(question)
  end
end

function session.close_question(id)
  close(id)
end

function session.close_questions()
  for id in pairs(vim.deepcopy(questions)) do
    close(id)
  end
end

-- Commands -----------------------------------------------------------------------------------------------------------

local function decide(accepting)
  if not sessions(function(each) return each.decide_here(accepting) end) then
    local waits = sessions(function(each) return each.has_reviews() end)
    tell(waits and "go to the proposed edit that you mean" or "no proposed edit waits for you", vim.log.levels.WARN)
  end
end

local function give_answer(yes)
  for _, each in pairs(_G.isthmus_sessions) do
    if each.answer_oldest(yes) then
      return
    end
  end
  tell("no question waits for an answer", vim.log.levels.WARN)
end

local function define(name, act, options)
  options = vim.tbl_extend("error", options or {}, { force = true, desc = COMMANDS[name] })
  api.nvim_create_user_command(name, act, options)
end

define("IsthmusMention", function(command)
  local name = session.file_name(api.nvim_get_current_buf())
  if command.args ~= "" then
    name = fn.fnamemodify(command.args, ":p")
    name = fn.filereadable(name) == 1 and name
  end
  if not name then
    local what = command.args ~= "" and command.args or "this buffer"
    tell(what .. " is not a file on disk", vim.log.levels.WARN)
    return
  end
  sessions(function(each)
    if command.range == 0 then
      return each.notify("isthmus", "mentioned", name)
    end
    return each.notify("isthmus", "mentioned", name, command.line1 - 1, command.line2 - 1)
  end)
end, { range = true, nargs = "?", complete = "file" })
define("IsthmusDiffAccept", function() decide(true) end)
define("IsthmusDiffReject", function() decide(false) end)
local function decide_hunks(accepting)
  return function(command)
    local count
    sessions(function(each)
      count = count or each.decide_hunks(accepting, command.line1, command.line2)
    end)
    if count == nil then
      tell("no proposed edit is under the cursor", vim.log.levels.WARN)
    elseif count == 0 then
      local why = accepting and "is as proposed" or "has no hunk"
      tell(("this line %s; ]c goes to the next hunk"):format(why), vim.log.levels.WARN)
    end
  end
end
define("IsthmusHunkAccept", decide_hunks(true), { range = true })
define("IsthmusHunkReject", decide_hunks(false), { range = true })
define("IsthmusAllow", function() give_answer(true) end)
define("IsthmusRefuse", function() give_answer(false) end)

function session.remove_commands() -- the last companion is gone
  for name in pairs(COMMANDS) do
    pcall(api.nvim_del_user_command, name)
  end
  if vim.g.loaded_isthmus then -- the plugin has commands of its own that say so
    pcall(function() require("isthmus").define_commands() end)
  end
end
