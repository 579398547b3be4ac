-- Reviews inside Neovim: the file on disk beside the proposal, in a tab page of its own or as the user's layout says.
-- `:w` accepts the text of the proposal, and closing it in any way rejects; the file is not written. Argument: the
-- session that session.lua made.
--
-- A decision is sent once, as a notification; after close_diff by the client none follows.
-- layouts.lua has the windows, bars.lua what stands above them, decisions.lua the commands that decide.

local session = ...
local api, fn = vim.api, vim.fn
local uv = vim.uv or vim.loop
local group, notify, tell, find_buffer = session.group, session.notify, session.tell, session.find_buffer
local focus = session.focus

local reviews = {} -- id -> review, while undecided
local arrived = 0 -- how many reviews came so far
local terminals = {} -- window -> true, where the user typed into a terminal when a review was shown
local leaving = false
local last_closed = -math.huge -- when a view was closed last, in focus.now()
local AGAIN_MS, MOST_AGAIN_MS = 1000, 30000 -- before a view that a program closed again and again is shown again
local LARGE = 20000 -- lines; copying and colouring takes a while from here on

local function on(events, callback, pattern)
  api.nvim_create_autocmd(events, { group = group, pattern = pattern, callback = callback })
end

local function is_before(one, other) -- in the order in which agents asked
  local first, second = one.options.asked or 0, other.options.asked or 0
  return first < second or (first == second and one.number < other.number)
end

local function ordered() -- the undecided reviews
  local list = vim.tbl_values(reviews)
  table.sort(list, is_before)
  return list
end

session.ordered_reviews = ordered

function session.has_review_in_tab(tab)
  for _, window in ipairs(api.nvim_tabpage_list_wins(tab)) do
    for _, review in pairs(reviews) do
      if api.nvim_win_get_buf(window) == review.proposed then
        return true
      end
    end
  end
  return false
end

function session.count_reviews()
  return vim.tbl_count(reviews)
end

local function fill(buffer, text)
  local bo = vim.bo[buffer]
  bo.modifiable, bo.readonly = true, false
  local levels = bo.undolevels
  bo.undolevels = -1 -- undo must not lead to an empty proposal
  api.nvim_buf_set_lines(buffer, 0, -1, false, text.lines)
  bo.undolevels = levels
  bo.fileformat, bo.bomb = text.fileformat, text.bomb
  bo.fixendofline = false
  bo.endofline = text.endofline
end

local function text_of(review) -- nil: nobody touched it
  local buffer = review.proposed
  if not api.nvim_buf_is_loaded(buffer) then
    return nil
  end
  local bo = vim.bo[buffer]
  local text = {
    lines = api.nvim_buf_get_lines(buffer, 0, -1, false),
    fileformat = bo.fileformat,
    bomb = bo.bomb,
    endofline = bo.endofline,
  }
  local proposal = review.options.proposed
  local same = bo.fileformat == proposal.fileformat
    and bo.bomb == proposal.bomb
    and bo.endofline == proposal.endofline
    and vim.deep_equal(text.lines, proposal.lines)
  return not same and text or nil
end

local function new_buffer(review, side, text)
  local buffer = api.nvim_create_buf(false, side == "current")
  -- Without folders and "://", of which Neovim leaves single letters in the label of a tab.
  local path = review.options.path
  local file, what = fn.fnamemodify(path, ":t"), side == "current" and "on disk" or side
  for _, name in ipairs({ file, ("%s in %s"):format(file, fn.fnamemodify(path, ":h:t")), file .. " #" .. review.id }) do
    name = ("%s (%s)"):format(name, what)
    -- A buffer of that name may be a file of the user's own, which is never taken.
    local is_taken = fn.bufnr("^" .. fn.fnameescape(fn.fnamemodify(name, ":p")) .. "$") ~= -1
    if not is_taken and pcall(api.nvim_buf_set_name, buffer, name) then
      break
    end
  end
  vim.b[buffer].isthmus_path = path
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].bufhidden = "hide"
  fill(buffer, text)
  local target = find_buffer(review.options.path)
  local filetype = target and vim.bo[target].filetype or ""
  if filetype == "" and vim.filetype then
    filetype = vim.filetype.match({ filename = review.options.path, buf = buffer }) or ""
  end
  if #text.lines < LARGE then -- else it may be parsed from its beginning, for seconds in which no key works
    vim.bo[buffer].syntax = filetype -- not 'filetype': language servers and plugins have no business here
  end
  if target and api.nvim_buf_is_loaded(target) then
    for _, name in ipairs({ "expandtab", "shiftwidth", "softtabstop", "tabstop", "textwidth" }) do
      vim.bo[buffer][name] = vim.bo[target][name]
    end
  end
  return buffer
end

local function each_window(review, action)
  for _, buffer in ipairs({ review.current, review.proposed }) do
    for _, window in ipairs(api.nvim_buf_is_valid(buffer) and fn.win_findbuf(buffer) or {}) do
      action(window)
    end
  end
end

-- Go to the next review that waits, in the order of their asking, else to where the user was.
local function go_back(review, was_in_terminal)
  local function type_on()
    if vim.bo.buftype == "terminal" then
      vim.cmd("startinsert")
    end
  end
  for _, other in ipairs(ordered()) do
    local beside = was_in_terminal and other.beside
    local window = fn.win_findbuf(other.proposed)[1]
    if beside and api.nvim_win_is_valid(beside) then
      api.nvim_set_current_win(beside)
      return type_on()
    elseif window and not was_in_terminal then
      api.nvim_set_current_win(window)
      focus.follows(other)
      return
    end
  end
  if api.nvim_win_is_valid(review.came_from) then
    api.nvim_set_current_win(review.came_from)
    if terminals[review.came_from] then
      type_on()
    end
  end
  terminals = {}
end

local function close_view(review, attempts)
  if review.closed then
    return
  end
  if fn.getcmdwintype() ~= "" and (attempts or 0) < 600 then -- nothing can be closed while the command-line window is open
    vim.defer_fn(function()
      close_view(review, (attempts or 0) + 1)
    end, 100)
    return
  end
  review.closed = true
  last_closed = focus.now()
  local function passes_on(window)
    for _, other in pairs(reviews) do
      other.came_from = other.came_from == window and review.came_from or other.came_from
    end
  end
  each_window(review, passes_on)
  for _, window in ipairs(review.windows or {}) do -- also those that the user has closed
    passes_on(window)
  end
  local current = api.nvim_get_current_buf()
  local inside = current == review.current or current == review.proposed
  local was_in_terminal = api.nvim_get_current_win() == review.beside
  if inside then
    vim.cmd("stopinsert")
    if session.VISUAL[api.nvim_get_mode().mode:sub(1, 1)] then
      focus.by_us(vim.cmd, "normal! \27")
    end
  end
  if review.own and api.nvim_win_is_valid(review.own) then
    api.nvim_win_call(review.own, function()
      vim.cmd("diffoff")
      fn.winrestview(review.own_place) -- the diff moved the cursors of both windows
    end)
  end
  each_window(review, function(window)
    if not pcall(api.nvim_win_close, window, true) then -- the last window of all
      pcall(api.nvim_set_option_value, "winfixbuf", false, { win = window, scope = "local" })
      api.nvim_win_call(window, function()
        pcall(vim.cmd, "diffoff")
        pcall(vim.cmd, "setlocal winbar=")
        pcall(vim.cmd, "enew!")
      end)
    end
  end)
  for _, buffer in ipairs({ review.current, review.proposed }) do
    pcall(api.nvim_buf_delete, buffer, { force = true })
  end
  if review.beside and api.nvim_win_is_valid(review.beside) then
    pcall(api.nvim_win_close, review.beside, true)
  end
  local before, tab = review.before, api.nvim_get_current_tabpage()
  if before and before.tab == tab and vim.deep_equal(before.windows, api.nvim_tabpage_list_wins(tab)) then
    vim.cmd(before.sizes)
  end
  if inside or was_in_terminal then
    go_back(review, was_in_terminal)
  end
  session.draw_bars()
end

-- `accepted` is nil if the user decided nothing here: it was answered elsewhere, or withdrawn.
local function decided(review, accepted)
  reviews[review.id] = nil
  local text = text_of(review) or review.left
  local hunks, taken = session.count_hunks(review.options, (text or review.options.proposed).lines)
  session.fire("DiffClosed", vim.tbl_extend("error", session.describe(review), {
    outcome = accepted and "accepted" or accepted == false and "rejected" or "elsewhere",
    accepted = accepted == true,
    rejected = accepted == false,
    hunks = hunks,
    accepted_hunks = accepted and taken or accepted == false and 0 or nil,
    edited = text ~= nil,
  }))
  if api.nvim_buf_is_valid(review.proposed) then
    vim.bo[review.proposed].modified = false
  end
end

-- The agent writes the file later, and perhaps in parts: check until it has the accepted text.
local function reload_when_written(path, lines)
  local timer, looks = uv.new_timer(), 0
  timer:start(100, 200, vim.schedule_wrap(function()
    local buffer = find_buffer(path)
    looks = looks + 1
    local usable = buffer and api.nvim_buf_is_loaded(buffer) and not vim.bo[buffer].modified
    if usable then
      session.reload({ path })
    end
    local done = usable and vim.deep_equal(api.nvim_buf_get_lines(buffer, 0, -1, false), lines)
    if (done or looks >= 300) and not timer:is_closing() then
      timer:close()
    end
  end))
end

-- `is_quiet`: the caller says what was decided.
local function accept(review, is_quiet)
  local text = text_of(review)
  local lines = text and text.lines or review.options.proposed.lines
  if not notify("isthmus", "accepted", review.id, text or vim.NIL) then
    return
  end
  decided(review, true)
  reload_when_written(review.options.path, lines)
  vim.schedule(function()
    close_view(review)
    if not is_quiet then
      tell("accepted " .. review.options.label)
    end
  end)
end

local function reject(review, is_quiet)
  notify("isthmus", "rejected", review.id, text_of(review) or review.left or vim.NIL)
  decided(review, false)
  vim.schedule(function()
    close_view(review)
    if not is_quiet then
      tell("rejected " .. review.options.label)
    end
  end)
end

-- Show the view again that a program has closed, later each time, for a program that closes everything. Only the user
-- decides, by keys.
local function show_again(review)
  if review.comes_again then
    return
  end
  review.comes_again = true
  local times = (review.options.times or 0) + 1
  local options = vim.tbl_extend("force", review.options, { times = times, text = text_of(review) or review.left })
  local function show_now()
    if reviews[review.id] ~= review or leaving or _G.isthmus_sessions[session.channel] ~= session then
      return
    elseif fn.getcmdwintype() ~= "" then -- no window can be opened beside the command-line window
      return vim.defer_fn(show_now, AGAIN_MS)
    end
    close_view(review)
    if pcall(session.open_diff, review.id, options) then
      tell(("the review of %s is not decided: a program closed it; :w accepts, :q rejects"):format(options.label))
    else
      reviews[review.id] = review
      vim.defer_fn(show_now, MOST_AGAIN_MS)
    end
  end
  vim.defer_fn(show_now, math.min((times - 1) * AGAIN_MS, MOST_AGAIN_MS))
end

-- End a review whose view is closed: the user rejects it. `reason`: why it was not the user; nil: it was.
local function is_closed(review, reason)
  if reviews[review.id] ~= review then
    return
  elseif reason then
    show_again(review)
  else
    reject(review)
  end
end

-- An undecided proposal counts as modified, so that :x and ZZ write it and nothing discards it without asking. A command
-- that quits has to find it unmodified; if Neovim does not quit, the mark is set again.
local function let_go(review)
  vim.bo[review.proposed].modified = false
  vim.schedule(function()
    if reviews[review.id] == review and api.nvim_buf_is_valid(review.proposed) and not leaving then
      vim.bo[review.proposed].modified = true
    end
  end)
end

local function write(review, event)
  if event.match ~= api.nvim_buf_get_name(review.proposed) then -- :w OTHERFILE keeps a copy and decides nothing
    if uv.fs_stat(event.match) and vim.v.cmdbang == 0 then
      error("E13: File exists (add ! to override)", 0)
    end
    local lines = api.nvim_buf_get_lines(review.proposed, 0, -1, false)
    if vim.bo[review.proposed].endofline then
      lines[#lines + 1] = ""
    end
    fn.writefile(lines, event.match, "b")
  elseif reviews[review.id] ~= review then
    vim.bo[review.proposed].modified = false
  elseif fn.win_gettype() == "autocmd" then -- :wall elsewhere, or a plugin that saves everything
    let_go(review)
    tell("the review of " .. review.options.label .. " is not decided: :w in its own window accepts")
  else
    local by_itself = session.why_no_write()
    local reason = focus.why_not(review) or by_itself
    if reason then
      vim.bo[review.proposed].modified = true -- so that :wq does not close it either
      local is_repeated = (by_itself or not focus.began()) and reason == review.said -- what saves by itself does so often
      review.said = reason
      if not is_repeated then
        vim.schedule(function() -- later, because `silent!` would hide it now
          tell(("the edit of %s is not accepted: %s; :w once more accepts"):format(review.options.label, reason))
        end)
      end
    else
      accept(review)
    end
  end
end

-- Send the text of a view soon after it changes, so that little is lost when Neovim crashes.
local function note_edit(review)
  if review.noted then
    return
  end
  review.noted = true
  vim.defer_fn(function()
    review.noted = false
    if reviews[review.id] == review then
      notify("isthmus", "edited", review.id, text_of(review) or vim.NIL)
    end
  end, api.nvim_buf_line_count(review.proposed) > LARGE and 5000 or 500)
end

local function watch(review)
  local function inside(events, buffer, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = buffer, callback = callback })
  end
  inside("BufWriteCmd", review.proposed, function(event)
    write(review, event)
  end)
  inside("BufReadCmd", review.proposed, function() -- :e! brings the proposal back
    fill(review.proposed, review.options.proposed)
    vim.bo[review.proposed].modified = true
    review.left = nil
  end)
  inside("BufModifiedSet", review.proposed, function()
    if not vim.bo[review.proposed].modified and reviews[review.id] == review then
      let_go(review)
    end
  end)
  inside({ "TextChanged", "TextChangedI", "TextChangedP" }, review.proposed, function()
    session.draw_unified(review)
    note_edit(review)
  end)
  inside("BufUnload", review.proposed, function() -- by :q! or :bd!
    review.left = text_of(review)
  end)
  inside("BufWipeout", review.proposed, function()
    is_closed(review, focus.why_not_users(true))
  end)
  inside("QuitPre", review.current, function()
    review.quitting = true
    vim.schedule(function()
      review.quitting = false
    end)
  end)
end

local function tell_where(review)
  local window = fn.win_findbuf(review.proposed)[1]
  if not window or reviews[review.id] ~= review then
    return
  end
  local tab = api.nvim_win_get_tabpage(window)
  local is_here = tab == api.nvim_get_current_tabpage()
  local number = is_here and api.nvim_win_get_number(window) or api.nvim_tabpage_get_number(tab)
  local place = is_here and "window %d (%d CTRL-W w)" or "tab %d (%dgt)"
  tell(("review of %s waits in " .. place):format(review.options.label, number, number))
end

-- The view of a review for focus.lua.
local function make_view(review)
  review.waits_its_turn = true
  function review.comes_before(other)
    return other.waits_its_turn and is_before(review, other)
  end
  function review.is_open()
    return reviews[review.id] == review
  end
  function review.is_front()
    local current = api.nvim_get_current_buf()
    return current == review.proposed or current == review.current
  end
  function review.to_front()
    local window = fn.win_findbuf(review.proposed)[1]
    if window then
      terminals[review.came_from] = review.from_terminal or nil
      api.nvim_set_current_win(window)
    end
  end
  function review.ready(takes_keys)
    if not api.nvim_buf_is_valid(review.proposed) then
      return
    end
    vim.b[review.proposed].isthmus_takes_keys = takes_keys
    for _, window in ipairs(fn.win_findbuf(review.proposed)) do
      session.bar_of_proposal(window, review, takes_keys)
    end
  end
  function review.returned()
    tell_where(review)
  end
end

-- Return what autocommands of the user learn of a review.
function session.describe(review)
  local options = review.options
  return { id = review.id, path = options.path, agent = options.agent or "", new_file = options.is_new == true }
end

function session.open_diff(id, options)
  arrived = arrived + 1
  local review = { id = id, number = arrived, options = options, shown_at = focus.now() }
  review.came_from = api.nvim_get_current_win()
  make_view(review)
  review.current = new_buffer(review, "current", options.current)
  vim.bo[review.current].modifiable = false
  vim.bo[review.current].readonly = true
  review.proposed = new_buffer(review, "proposed", options.text or options.proposed)
  vim.bo[review.proposed].buftype = "acwrite"
  vim.bo[review.proposed].modified = true
  local mode = api.nvim_get_mode().mode
  review.from_terminal = mode == "t"
  review.stays = session.review_setting("stay_in_terminal") == true and vim.bo.buftype == "terminal"
  local stays_here = review.stays and session.has_review_in_tab(api.nvim_get_current_tabpage())
  -- Behind a review at which the user is, the others wait for their turn.
  local comes = focus.may_come() and not review.stays and not session.review_here()
  terminals[review.came_from] = review.from_terminal or nil
  local ok, problem = pcall(focus.by_us, session.show_review, review)
  if not ok then
    close_view(review)
    error(problem, 0)
  end
  reviews[id] = review
  watch(review)
  if comes then
    focus.came(review)
  else -- keys that are under way must not land in the proposal
    local waits_behind = false
    focus.by_us(function()
      api.nvim_set_current_win(not stays_here and review.beside or review.came_from)
      waits_behind = session.review_here() ~= nil
      if session.VISUAL[mode:sub(1, 1)] then
        vim.cmd("normal! gv")
      elseif review.from_terminal and api.nvim_get_mode().mode ~= "t" then
        vim.cmd("startinsert")
      end
    end)
    review.ready(false)
    review.unseen = mode ~= "n" and mode ~= "nt"
    if not review.stays then
      vim.schedule(function()
        if not waits_behind then -- else the bar counts it
          tell_where(review)
        end
      end)
      focus.wait(review)
    end
  end
  session.draw_bars()
  if not options.times then
    local hunks, _, added, removed = session.count_hunks(options, options.proposed.lines)
    local counts = { hunks = hunks, added = added, removed = removed }
    session.fire("DiffOpened", vim.tbl_extend("error", session.describe(review), counts))
  end
  session.changed()
end

function session.close_diff(id)
  local review = reviews[id]
  if not review then
    return vim.NIL
  end
  local text = text_of(review)
  decided(review)
  close_view(review)
  return { text = text or vim.NIL }
end

function session.answer_review(review, accepting, is_quiet)
  (accepting and accept or reject)(review, is_quiet)
end

function session.last_closed() -- when a view was closed last, in focus.now()
  return last_closed
end

on("QuitPre", function()
  for _, review in pairs(reviews) do
    let_go(review)
  end
end)
on("ModeChanged", function() -- the mode's own line had hidden it
  vim.schedule(function()
    if api.nvim_get_mode().mode:sub(1, 1) ~= "n" then -- only passing, as when the view itself was made
      return
    end
    for _, review in pairs(reviews) do
      if review.unseen and api.nvim_get_current_buf() ~= review.proposed then
        tell_where(review)
      end
      review.unseen = nil
    end
  end)
end, "*:n")
local function review_here()
  local current = api.nvim_get_current_buf()
  for _, review in pairs(reviews) do
    if review.proposed == current or review.current == current then
      return review
    end
  end
end

session.review_here, session.note_edit = review_here, note_edit

on({ "WinEnter", "BufEnter" }, function()
  local review = review_here()
  if review and not review.takes_keys_at then
    focus.entered(review)
  end
end)
on("WinLeave", function()
  local review = review_here()
  if review then
    focus.left(review)
  end
end)
on("CmdlineLeave", function() -- :bd and :bw refuse a modified buffer; typed here they mean "reject"
  local review
  for _, candidate in pairs(reviews) do
    review = candidate.proposed == api.nvim_get_current_buf() and candidate or review
  end
  if not review or vim.v.event.abort then
    return
  end
  local ok, command = pcall(api.nvim_parse_cmd, fn.getcmdline(), {})
  if ok and (command.cmd == "bdelete" or command.cmd == "bwipeout" or command.cmd == "bunload") then
    let_go(review)
  end
end, ":")
on({ "WinClosed", "BufWinLeave" }, function(event)
  for _, review in pairs(reviews) do
    review.abandoned = review.abandoned or (review.quitting and event.buf == review.current)
  end
  local reason = focus.why_not_users(true)
  vim.schedule(function()
    for _, review in pairs(reviews) do
      if review.abandoned or #fn.win_findbuf(review.proposed) == 0 then
        is_closed(review, reason)
      end
    end
  end)
end)

function session.reject_reviews() -- Neovim quits
  leaving = true
  for id, review in pairs(reviews) do
    notify("isthmus", "rejected", id, text_of(review) or vim.NIL)
  end
  reviews = {}
end

function session.close_reviews()
  for _, review in pairs(reviews) do
    decided(review)
    close_view(review)
  end
end

-- Name the buffer like a file in the folder where a companion keeps texts, so that `:w` writes it there.
local function name_kept(review)
  local folder, buffer = review.options.kept_folder, review.proposed
  local label = fn.fnamemodify(review.options.path, ":t"):sub(-80)
  local stamp = ("%s-%08x"):format(os.date("%Y%m%d-%H%M%S"), uv.hrtime() % 0x100000000)
  local path = ("%s/%s-%s"):format(folder, stamp, label)
  pcall(fn.mkdir, folder, "p", 448) -- 0700
  if not pcall(api.nvim_buf_set_name, buffer, path) then
    api.nvim_buf_set_name(buffer, "")
    return
  end
  api.nvim_create_autocmd("BufWritePost", { -- in no group, as that of the session is gone
    buffer = buffer,
    callback = function()
      pcall(fn.setfperm, path, "rw-------")
    end,
  })
  tell(("what you typed into the review of %s is not decided and not saved: :w keeps it in %s"):format(review.options.label, path))
end

function session.keep_reviews() -- no agent waits any more: keep what the user typed, and close the other views
  for _, review in pairs(reviews) do
    local touched = text_of(review) ~= nil
    decided(review)
    if touched then
      vim.bo[review.proposed].buftype = ""
      vim.bo[review.proposed].buflisted = true
      local name = api.nvim_buf_get_name(review.proposed)
      name_kept(review)
      for _, buffer in ipairs(api.nvim_list_bufs()) do -- Neovim keeps the former name in a buffer of its own
        if api.nvim_buf_get_name(buffer) == name then
          pcall(api.nvim_buf_delete, buffer, { force = true })
        end
      end
      vim.bo[review.proposed].modified = true
      -- When the text is closed, close the view beside it. The autocommand is in no group, because the session's is
      -- gone, and not local to the buffer, because `:w FILE` would remove it.
      local watching
      watching = api.nvim_create_autocmd({ "WinClosed", "BufWinLeave" }, {
        callback = vim.schedule_wrap(function()
          if #fn.win_findbuf(review.proposed) == 0 and pcall(api.nvim_del_autocmd, watching) then
            each_window(review, function(window)
              pcall(api.nvim_win_close, window, true)
            end)
          end
        end),
      })
      for _, window in ipairs(fn.win_findbuf(review.proposed)) do
        local names = { "nobody waits for this any more", "nobody waits" }
        session.bar(window, "WarningMsg", names, " %#Title#:w%* keeps your text  ", review.options.label)
      end
    else
      close_view(review)
    end
  end
end
