-- Commands of the user while a companion is attached, and yes-or-no questions in small windows. Argument: the session
-- that session.lua made and review.lua completed.
--
-- The commands act on all attached companions. An answer is sent once, as a notification; after close_question none
-- follows.

local session = ...
local api, fn = vim.api, vim.fn
local uv = vim.uv or vim.loop
local notify, tell, focus = session.notify, session.tell, session.focus

local MOST_MENTIONS = 20 -- the companion keeps as many for an agent that connects soon
local NOT_USERS = "the question is not answered: %s; once more answers"
local COMMANDS = {
  IsthmusMention = "Show this file, or these lines, to the agent",
  IsthmusDiffAccept = "Accept the proposed edit in this window, or the only one that waits",
  IsthmusDiffReject = "Reject the proposed edit in this window, or the only one that waits",
  IsthmusDiffAcceptAll = "Accept all proposed edits of an agent that wait",
  IsthmusDiffRejectAll = "Reject all proposed edits of an agent that wait",
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
  vim.bo[buffer].modifiable = true -- also with `nvim -M`
  api.nvim_buf_set_lines(buffer, 0, -1, false, shown)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].bufhidden = "wipe"
  vim.b[buffer].isthmus_question = id
  pcall(api.nvim_buf_set_name, buffer, ("question %s (agent)"):format(id:sub(1, 8))) -- the label of its tab page
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

-- Return the agents whose reviews wait: (companion and agent) -> name, and the one of the review in this window.
local function agents_of_reviews()
  local found, here = {}, nil
  sessions(function(each)
    for _, review in ipairs(each.ordered_reviews()) do
      local key = each.channel .. " " .. (review.options.owner or "")
      found[key] = review.options.agent or ""
      here = review == each.review_here() and key or here
    end
  end)
  return found, here
end

local function names_of_agents()
  local names = {}
  for _, name in pairs((agents_of_reviews())) do
    names[name] = true
  end
  names = vim.tbl_keys(names)
  table.sort(names)
  return names
end

-- Decide all reviews of an agent: of the one that is named, else of the one whose review is in this window, else of the
-- only one.
local function decide_all(accepting)
  return function(command)
    local agents, here = agents_of_reviews()
    local title, only = command.args, here or vim.tbl_count(agents) == 1 and next(agents) or nil
    if not next(agents) then
      return tell("no proposed edit waits for you", vim.log.levels.WARN)
    elseif title == "" and not only then
      local names = table.concat(names_of_agents(), ", ")
      return tell("several agents wait; go to a review of one, or name it: " .. names, vim.log.levels.WARN)
    end
    local counted, left, agent, problem = 0, 0, nil, nil
    sessions(function(each)
      local count, later = each.decide_all(accepting, function(review)
        local key, name = each.channel .. " " .. (review.options.owner or ""), review.options.agent or ""
        local is_meant = title == "" and key == only or title ~= "" and name:lower() == title:lower()
        agent = is_meant and name or agent
        return is_meant
      end)
      problem = not count and later or problem
      counted, left = counted + (count or 0), left + (count and later or 0)
    end)
    if problem or not agent then
      return tell(problem or ("no proposed edit of %q waits"):format(title), vim.log.levels.WARN)
    end
    local later = left > 0 and ("; %d that came meanwhile still wait"):format(left) or ""
    tell(("%s %d edit(s) of %s%s"):format(accepting and "accepted" or "rejected", counted, agent, later))
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

-- Return the paths that a mention means, and its lines (from 0); or nil and why there are none.
local function mentioned(command)
  if command.args ~= "" then
    local first, last
    local path = fn.fnamemodify(command.args, ":p")
    if not uv.fs_stat(path) then -- perhaps lines follow
      local name
      name, first, last = command.args:match("^(.-)%s+(%d+)%s*(%d*)$")
      path = name and fn.fnamemodify(name, ":p") or path
      first, last = tonumber(first), tonumber(last)
    end
    if not uv.fs_stat(path) then
      return nil, command.args .. " is not a file on disk"
    elseif first and (first < 1 or last and last < first) then
      return nil, "expected lines from 1 on, such as :IsthmusMention a.py 3 9"
    end
    return { path }, first and first - 1, first and (last or first) - 1
  end
  local chosen, problem = session.chosen_in_tree(command)
  if chosen or problem then
    return chosen, problem
  end
  local path = session.file_name(api.nvim_get_current_buf())
  if path then
    return { path }, command.range > 0 and command.line1 - 1 or nil, command.range > 0 and command.line2 - 1 or nil
  end
  local here = vim.bo.buftype == "terminal" and "a terminal" or "not a file on disk"
  return nil, ("this buffer is %s; name a file: :IsthmusMention FILE"):format(here)
end

-- Point the attached agents to a file or folder, or to lines of it (from 0).
function session.mention(path, first, last)
  sessions(function(each)
    if not first then
      return each.notify("isthmus", "mentioned", path)
    end
    return each.notify("isthmus", "mentioned", path, first, last or first)
  end)
  session.fire("Sent", { path = path, first = first and first + 1 or nil, last = first and (last or first) + 1 or nil })
end

define("IsthmusMention", function(command)
  local paths, first, last = mentioned(command)
  if not paths then
    return tell(first, vim.log.levels.WARN)
  end
  for index, path in ipairs(paths) do
    if index > MOST_MENTIONS then
      local said = "mentioned %d of %d files: mention their folder instead"
      return tell(said:format(MOST_MENTIONS, #paths), vim.log.levels.WARN)
    end
    session.mention(path, first, last)
  end
end, { range = true, nargs = "?", complete = "file" })
define("IsthmusDiffAccept", function() decide(true) end)
define("IsthmusDiffReject", function() decide(false) end)
define("IsthmusDiffAcceptAll", decide_all(true), { nargs = "?", complete = names_of_agents })
define("IsthmusDiffRejectAll", decide_all(false), { nargs = "?", complete = names_of_agents })
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
