-- A whole review in one buffer: the proposal, with the lines that it removes shown between its own. The text can be edited
-- as in the other layouts, and `]c` and `[c` go to its hunks. Argument: the session that session.lua made.

local session = ...
local api, fn = vim.api, vim.fn

local namespace = api.nvim_create_namespace("isthmus_unified_" .. session.channel)
local MOST_REMOVED = 200 -- lines of one hunk that are shown
local LARGE = 20000 -- lines from which on a change is drawn only when the user pauses

for name, group in pairs({ IsthmusAdded = "DiffAdd", IsthmusRemoved = "DiffDelete" }) do
  api.nvim_set_hl(0, name, { link = group, default = true }) -- users may set others
end

-- Return a text with spaces in place of its tabs, which Neovim draws in no virtual line.
local function without_tabs(text, tabstop)
  while true do
    local before, after = text:match("^([^\t]*)\t(.*)$")
    if not before then
      return text
    end
    text = before .. (" "):rep(tabstop - fn.strdisplaywidth(before) % tabstop) .. after
  end
end

-- Return the virtual lines of removed ones: with a minus in the first column of the window, where added lines have a plus.
local function removed_lines(review, from, size)
  local shown, tabstop = {}, vim.bo[review.proposed].tabstop
  local window = fn.win_findbuf(review.proposed)[1]
  local columns = window and fn.getwininfo(window)[1].textoff or 2
  local function add(text)
    local mark = "-" .. (" "):rep(columns - 1)
    shown[#shown + 1] = { { mark, "IsthmusRemoved" }, { text, "IsthmusRemoved" } }
  end
  for index = from + 1, from + math.min(size, MOST_REMOVED) do
    add(without_tabs(review.options.current.lines[index], tabstop))
  end
  if size > MOST_REMOVED then
    add(("... %d more lines"):format(size - MOST_REMOVED))
  end
  return shown
end

-- Lines above the first one are seen only in a window that has scrolled beyond it.
local function show_above_first(review, count)
  for _, window in ipairs(fn.win_findbuf(review.proposed)) do
    api.nvim_win_call(window, function()
      if fn.line("w0") == 1 then
        fn.winrestview({ topline = 1, topfill = math.min(count, api.nvim_win_get_height(window) - 1) })
      end
    end)
  end
end

local function draw(review)
  local buffer = review.proposed
  if not api.nvim_buf_is_loaded(buffer) then
    return
  end
  api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  local lines = api.nvim_buf_get_lines(buffer, 0, -1, false)
  review.unified_hunks = session.hunks_between(lines, review.options.current.lines)
  for _, hunk in ipairs(review.unified_hunks) do
    local start, count, from, size = unpack(hunk)
    for row = start, start + count - 1 do
      api.nvim_buf_set_extmark(buffer, namespace, row, 0, { line_hl_group = "IsthmusAdded", sign_text = "+" })
    end
    if size > 0 then
      local is_behind = start >= #lines
      local removed = removed_lines(review, from, size)
      api.nvim_buf_set_extmark(buffer, namespace, is_behind and #lines - 1 or start, 0, {
        virt_lines = removed,
        virt_lines_above = not is_behind,
        virt_lines_leftcol = true,
      })
      if start == 0 and not is_behind then
        show_above_first(review, #removed)
      end
    end
  end
end

function session.draw_unified(review)
  if not review.is_unified then
    return
  elseif #review.options.proposed.lines < LARGE then
    return draw(review)
  elseif not review.draws_later then
    review.draws_later = true
    vim.defer_fn(function()
      review.draws_later = false
      draw(review)
    end, 500)
  end
end

local function go(review, is_back)
  local line, last = fn.line("."), api.nvim_buf_line_count(review.proposed)
  local found
  for _, hunk in ipairs(review.unified_hunks or {}) do
    local at = math.min(hunk[1] + 1, last)
    if is_back and at < line then
      found = at
    elseif not is_back and at > line then
      found = found or at
    end
  end
  if found then
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { found, 0 })
  end
end

-- Draw a review in its window, and put the cursor on its first hunk.
function session.begin_unified(review, window)
  api.nvim_set_option_value("signcolumn", "yes", { win = window, scope = "local" })
  draw(review)
  for key, is_back in pairs({ ["]c"] = false, ["[c"] = true }) do
    vim.keymap.set("n", key, function() go(review, is_back) end, {
      buffer = review.proposed, desc = "Isthmus: Go to the " .. (is_back and "previous" or "next") .. " hunk",
    })
  end
  local first = review.unified_hunks[1]
  if first then
    local row = math.min(first[1] + 1, api.nvim_buf_line_count(review.proposed))
    api.nvim_win_set_cursor(window, { row, 0 })
    if row == 1 then
      draw(review)
    end
  end
end
