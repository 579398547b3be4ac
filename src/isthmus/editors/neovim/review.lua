-- Reviews inside Neovim: the file on disk beside the proposal, in a tab page of its own or as the user's layout says.
-- `:w` accepts the text of the proposal, and closing it in any way rejects; the file is not written. Argument: the
-- session that session.lua made.
--
-- A decision is sent once, as a notification; after close_diff by the client none follows.
--
--   vim.g.isthmus_review = {
--     layout = "tab",  -- or in this tab page: "vertical", "horizontal"; "window": beside the window that has the file
--   }

local session = ...
local api, fn = vim.api, vim.fn
local uv = vim.uv or vim.loop
local group, notify, tell, find_buffer = session.group, session.notify, session.tell, session.find_buffer
local focus = session.focus

local reviews = {} -- id -> review, while undecided
local terminals = {} -- window -> true, where the user typed into a terminal when a review was shown
local leaving = false
local last_closed = -math.huge -- when a view was closed last, in focus.now()
-- How each layout opens its two windows. Of the window that has the file, "window" opens the second one alone.
local LAYOUTS = {
  tab = { "tab split", "rightbelow vsplit" },
  vertical = { "topleft split", "rightbelow vsplit" },
  horizontal = { "topleft vsplit", "rightbelow split" },
}
local AGAIN_MS, MOST_AGAIN_MS = 1000, 30000 -- before a view that a program closed again and again is shown again
local LARGE = 20000 -- lines; copying and colouring takes a while from here on

local function on(events, callback, pattern)
  api.nvim_create_autocmd(events, { group = group, pattern = pattern, callback = callback })
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
  -- Without folders, which Neovim cuts to single letters in the label of a tab.
  local path = review.options.path
  local name = ("isthmus://%s %s"):format(side, fn.fnamemodify(path, ":t"))
  local longer = ("%s in %s"):format(name, fn.fnamemodify(path, ":h:t"))
  if not pcall(api.nvim_buf_set_name, buffer, name) and not pcall(api.nvim_buf_set_name, buffer, longer) then
    api.nvim_buf_set_name(buffer, name .. " #" .. review.id)
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

local function go_back(review) -- to the next review that waits, else to where the user was
  for _, other in pairs(reviews) do
    local window = fn.win_findbuf(other.proposed)[1]
    if window then
      api.nvim_set_current_win(window)
      focus.follows(other)
      return
    end
  end
  if api.nvim_win_is_valid(review.came_from) then
    api.nvim_set_current_win(review.came_from)
    if terminals[review.came_from] and vim.bo.buftype == "terminal" then
      vim.cmd("startinsert")
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
  each_window(review, function(window)
    for _, other in pairs(reviews) do
      other.came_from = other.came_from == window and review.came_from or other.came_from
    end
  end)
  local current = api.nvim_get_current_buf()
  local inside = current == review.current or current == review.proposed
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
  local before, tab = review.before, api.nvim_get_current_tabpage()
  if before and before.tab == tab and vim.deep_equal(before.windows, api.nvim_tabpage_list_wins(tab)) then
    vim.cmd(before.sizes)
  end
  if inside then
    go_back(review)
  end
end

-- `accepted` is nil if the user decided nothing here: it was answered elsewhere, or withdrawn.
local function decided(review, accepted)
  reviews[review.id] = nil
  session.fire("DiffClosed", { path = review.options.path, accepted = accepted == true, rejected = accepted == false })
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

local function accept(review)
  local text = text_of(review)
  local lines = text and text.lines or review.options.proposed.lines
  if not notify("isthmus", "accepted", review.id, text or vim.NIL) then
    return
  end
  decided(review, true)
  reload_when_written(review.options.path, lines)
  vim.schedule(function()
    close_view(review)
    tell("accepted " .. review.options.label)
  end)
end

local function reject(review)
  notify("isthmus", "rejected", review.id, text_of(review) or review.left or vim.NIL)
  decided(review, false)
  vim.schedule(function()
    close_view(review)
    tell("rejected " .. review.options.label)
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

local bars = {} -- window -> what its bar says, to be drawn again when its width changes

-- Draw a bar that fits: the hint whole, and as much of who proposed the edit of which file as has room beside it.
local function draw_bar(window)
  local hint, highlight, names, label = unpack(bars[window])
  local room = api.nvim_win_get_width(window) - fn.strdisplaywidth((hint:gsub("%%#%w+#", ""):gsub("%%%*", "")))
  local tail = fn.fnamemodify(label, ":t")
  local name, file = "", ""
  local choices = { { names[1], label }, { names[1], tail }, { names[1] }, { names[2], tail }, { names[2] } }
  for _, choice in ipairs(choices) do
    local shown = (" %s "):format(choice[1]) .. (choice[2] and " " .. choice[2] or "")
    if fn.strdisplaywidth(shown) <= room then
      name, file = choice[1], choice[2] or ""
      break
    end
  end
  local function literal(text)
    return (text:gsub("%%", "%%%%"))
  end
  local function set(option, format, ...)
    api.nvim_set_option_value(option, format:format(...), { win = window, scope = "local" })
  end
  name = name ~= "" and (" %s "):format(literal(name)) or ""
  set("winbar", "%s%%#%s#%s%%* %%<%s", hint, highlight, name, literal(file))
  set("statusline", " %%<%s%%=%%l,%%c  %%P ", literal(label))
end

-- `names` are two forms of the same name, the longer one first.
local function bar(window, highlight, names, hint, label)
  bars[window] = { hint, highlight, names, label }
  draw_bar(window)
end

on({ "VimResized", fn.exists("##WinResized") == 1 and "WinResized" or "WinEnter" }, function()
  for window in pairs(bars) do
    if api.nvim_win_is_valid(window) and vim.wo[window].winbar ~= "" then
      draw_bar(window)
    else
      bars[window] = nil
    end
  end
end)

local KEYS = " %#Title#:w%* accept  %#Title#:q%* reject  "
local KEYS_SOON = " %#WarningMsg#:w accepts in a moment%*  "
local KEYS_GO_BACK = " %#WarningMsg#keys still go where you were%*  "

local function proposers(review) -- the forms of the name that the bar can show
  return { review.options.proposed_by, (review.options.proposed_by:gsub("^proposed ", "")) }
end

-- Return the window of this tab page that shows the file as it is on disk.
local function own_window(review)
  local target = find_buffer(review.options.path)
  local lines = review.options.current.lines
  for _, window in ipairs(target and api.nvim_tabpage_list_wins(0) or {}) do
    local is_float = api.nvim_win_get_config(window).relative ~= ""
    if api.nvim_win_get_buf(window) == target and not is_float and not vim.bo[target].modified then
      return vim.deep_equal(api.nvim_buf_get_lines(target, 0, -1, false), lines) and window or nil
    end
  end
end

-- Open the first window of a review, and return how the second one is opened. Without room in this tab page, or with
-- another diff there, which would be mixed with this one, the review gets a tab page of its own.
local function open_first(review)
  local settings, windows = vim.g.isthmus_review, api.nvim_tabpage_list_wins(0)
  local layout = type(settings) == "table" and settings.layout or "tab"
  for _, window in ipairs(windows) do
    layout = vim.wo[window].diff and "tab" or layout
  end
  review.own = layout == "window" and own_window(review) or nil
  local splits = LAYOUTS[layout] or layout == "window" and LAYOUTS.vertical or LAYOUTS.tab
  if splits ~= LAYOUTS.tab then
    review.before = { tab = api.nvim_get_current_tabpage(), windows = windows, sizes = fn.winrestcmd() }
  end
  if review.own then
    api.nvim_set_current_win(review.own)
  elseif splits == LAYOUTS.tab or not pcall(vim.cmd, splits[1]) then
    vim.cmd(LAYOUTS.tab[1])
    return LAYOUTS.tab[2]
  end
  return splits[2]
end

local function show(review)
  local options = review.options
  local function arrange(window, buffer, highlight, names, hint_text)
    api.nvim_win_set_buf(window, buffer)
    api.nvim_win_call(window, function()
      vim.cmd("diffthis")
    end)
    bar(window, highlight, names, hint_text, options.label)
    pcall(api.nvim_set_option_value, "winfixbuf", true, { win = window, scope = "local" }) -- since 0.10
  end
  local second = open_first(review)
  local left = api.nvim_get_current_win()
  if not review.own then
    pcall(api.nvim_set_option_value, "winfixbuf", false, { win = left, scope = "local" })
    api.nvim_win_set_buf(left, review.current)
  end
  vim.cmd(second)
  local right = api.nvim_get_current_win()
  pcall(api.nvim_set_option_value, "winfixbuf", false, { win = right, scope = "local" })
  local target = find_buffer(options.path)
  local unsaved = target and vim.bo[target].modified and ", without your unsaved changes" or ""
  if review.own then
    api.nvim_win_call(left, function()
      review.own_place = fn.winsaveview()
      vim.cmd("diffthis")
    end)
  else
    arrange(left, review.current, "DiffDelete", { options.note .. unsaved, options.note }, "")
  end
  arrange(right, review.proposed, "DiffAdd", proposers(review), KEYS)
  if not review.before then
    vim.cmd("wincmd =")
  end
  api.nvim_win_call(right, function()
    vim.cmd("normal! gg")
    if fn.diff_hlID(1, 1) == 0 then
      pcall(vim.cmd, "normal! ]c")
    end
  end)
  api.nvim_set_current_win(right)
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
    local hint = KEYS
    if not takes_keys and review.takes_keys_at then -- it is in front
      hint = review.gives_back and KEYS_GO_BACK or KEYS_SOON
    end
    for _, window in ipairs(fn.win_findbuf(review.proposed)) do
      bar(window, "DiffAdd", proposers(review), hint, review.options.label)
    end
  end
  function review.returned()
    tell_where(review)
  end
end

function session.open_diff(id, options)
  local review = { id = id, options = options, came_from = api.nvim_get_current_win() }
  make_view(review)
  review.current = new_buffer(review, "current", options.current)
  vim.bo[review.current].modifiable = false
  vim.bo[review.current].readonly = true
  review.proposed = new_buffer(review, "proposed", options.text or options.proposed)
  vim.bo[review.proposed].buftype = "acwrite"
  vim.bo[review.proposed].modified = true
  local mode = api.nvim_get_mode().mode
  local comes = focus.may_come()
  review.from_terminal = mode == "t"
  terminals[review.came_from] = review.from_terminal or nil
  local ok, problem = pcall(focus.by_us, show, review)
  if not ok then
    close_view(review)
    error(problem, 0)
  end
  reviews[id] = review
  watch(review)
  if comes then
    focus.came(review)
  else -- keys that are under way must not land in the proposal
    focus.by_us(function()
      api.nvim_set_current_win(review.came_from)
      if session.VISUAL[mode:sub(1, 1)] then
        vim.cmd("normal! gv")
      elseif review.from_terminal and api.nvim_get_mode().mode ~= "t" then
        vim.cmd("startinsert")
      end
    end)
    review.ready(false)
    review.unseen = mode ~= "n" and mode ~= "nt"
    vim.schedule(function()
      tell_where(review)
    end)
    focus.wait(review)
  end
  if not options.times then
    session.fire("DiffOpened", { path = options.path })
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

-- Decide by command: the review of the current window, or else, unless only that one is meant, the only one. If another
-- review was there when the command began, which was meant for that one, accepting is refused. Keys that mean only the
-- current window may be mapped, so that they accept nothing that could not be read yet.
function session.decide_here(accepting, is_here)
  local current, found, count = api.nvim_get_current_buf(), nil, 0
  for _, review in pairs(reviews) do
    count = count + 1
    if review.proposed == current or review.current == current then
      found = review
    end
  end
  local _, only = next(reviews)
  found = found or (count == 1 and not is_here and only or nil)
  local began = focus.began()
  local foreign = focus.why_not_users()
  local reason = found and is_here and focus.why_not(found)
  if found and foreign then
    tell(("the edit of %s is not decided: %s; once more does so"):format(found.options.label, foreign))
  elseif found and accepting and began and began < last_closed then
    tell("nothing is accepted: another review ended while you typed; once more accepts " .. found.options.label)
  elseif found and accepting and reason then
    tell(("the edit of %s is not accepted: %s; once more accepts"):format(found.options.label, reason))
  elseif found and accepting then
    accept(found)
  elseif found then
    reject(found)
  end
  return found ~= nil
end

function session.has_reviews()
  return next(reviews) ~= nil
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
        bar(window, "WarningMsg", names, " %#Title#:w%* keeps your text  ", review.options.label)
      end
    else
      close_view(review)
    end
  end
end
