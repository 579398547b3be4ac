-- Where a review opens: its windows, in a tab page of its own or in that of the user. Argument: the session that session.lua
-- made; review.lua completes it.
--
--   vim.g.isthmus_review = {
--     layout = "tab",  -- or in this tab page: "vertical", "horizontal"; "window": beside the window that has the file;
--                      -- in one buffer: "unified" (a tab page), "unified-split" (this tab page); see unified.lua
--     stay_in_terminal = false,  -- true: a review takes no focus from a terminal, which stays beside it
--   }

local session = ...
local api, fn = vim.api, vim.fn
local find_buffer = session.find_buffer

-- How each layout opens its two windows. Of the window that has the file, "window" opens the second one alone.
local LAYOUTS = {
  tab = { nil, "rightbelow vsplit" },
  vertical = { "topleft split", "rightbelow vsplit" },
  horizontal = { "topleft vsplit", "rightbelow split" },
}
local UNIFIED = { unified = "tab", ["unified-split"] = "vertical" } -- where the only window of these opens

function session.review_setting(name)
  local settings = vim.g.isthmus_review
  return type(settings) == "table" and settings[name] or nil
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

-- Open a tab page behind the reviews that wait, so that their tab pages stand in the order of their asking.
local function open_tab()
  local last = 0
  for _, other in ipairs(session.ordered_reviews()) do
    for _, window in ipairs(fn.win_findbuf(other.proposed)) do
      last = math.max(last, api.nvim_tabpage_get_number(api.nvim_win_get_tabpage(window)))
    end
  end
  vim.cmd((last > 0 and tostring(last) or "") .. "tab split")
end

-- Open the first window of a review, and return how the second one is opened, if there is one. Without room in this tab
-- page, or with another diff there, which would be mixed with this one, the review gets a tab page of its own. In that a
-- terminal that keeps the focus stays beside it.
local function open_first(review)
  local windows = api.nvim_tabpage_list_wins(0)
  local layout = session.review_setting("layout") or "tab"
  review.is_unified = UNIFIED[layout] ~= nil
  layout = UNIFIED[layout] or layout
  for _, window in ipairs(windows) do
    local is_review = vim.b[api.nvim_win_get_buf(window)].isthmus_path ~= nil
    layout = (is_review or vim.wo[window].diff and not review.is_unified) and "tab" or layout
  end
  review.own = layout == "window" and own_window(review) or nil
  local splits = LAYOUTS[layout] or layout == "window" and LAYOUTS.vertical or LAYOUTS.tab
  if splits ~= LAYOUTS.tab then
    review.before = { tab = api.nvim_get_current_tabpage(), windows = windows, sizes = fn.winrestcmd() }
  end
  if review.own then
    api.nvim_set_current_win(review.own)
  elseif splits == LAYOUTS.tab or not pcall(vim.cmd, splits[1]) then
    splits = LAYOUTS.tab
    open_tab()
    if review.stays and pcall(vim.cmd, "topleft vsplit") then
      review.beside = fn.win_getid(fn.winnr("#"))
      local width = math.min(api.nvim_win_get_width(review.came_from), math.floor(vim.o.columns / 2))
      api.nvim_win_set_width(review.beside, width)
    end
  end
  return not review.is_unified and splits[2] or nil
end

-- Open the windows of a review, go to the proposal, and note them in the review.
function session.show_review(review)
  local options = review.options
  local function arrange(window, buffer)
    api.nvim_win_set_buf(window, buffer)
    if not review.is_unified then
      api.nvim_win_call(window, function()
        vim.cmd("diffthis")
      end)
    end
    pcall(api.nvim_set_option_value, "winfixbuf", true, { win = window, scope = "local" }) -- since 0.10
  end
  local second = open_first(review)
  local left = api.nvim_get_current_win()
  if second and not review.own then
    pcall(api.nvim_set_option_value, "winfixbuf", false, { win = left, scope = "local" })
    api.nvim_win_set_buf(left, review.current)
  end
  if second then
    vim.cmd(second)
  end
  local right = api.nvim_get_current_win()
  pcall(api.nvim_set_option_value, "winfixbuf", false, { win = right, scope = "local" })
  local target = find_buffer(options.path)
  local unsaved = target and vim.bo[target].modified and ", without your unsaved changes" or ""
  review.unsaved = unsaved
  if review.own then
    api.nvim_win_call(left, function()
      review.own_place = fn.winsaveview()
      vim.cmd("diffthis")
    end)
  elseif second then
    arrange(left, review.current)
    session.bar(left, "DiffDelete", { options.note .. unsaved, options.note }, "", options.label)
  end
  arrange(right, review.proposed)
  session.bar_of_proposal(right, review, true)
  if not review.before and not review.beside then
    vim.cmd("wincmd =")
  end
  api.nvim_set_current_win(right)
  review.windows = { right, review.own and right or left, review.beside }
  if review.is_unified then
    session.begin_unified(review, right)
  else
    api.nvim_win_call(right, function()
      vim.cmd("normal! gg")
      if fn.diff_hlID(1, 1) == 0 then
        pcall(vim.cmd, "normal! ]c")
      end
    end)
  end
end
