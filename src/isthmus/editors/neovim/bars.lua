-- The bars above the windows of reviews: the keys that decide, who proposed the edit of which file, and how many reviews
-- wait behind this one. Argument: the session that session.lua made; review.lua completes it.

local session = ...
local api, fn = vim.api, vim.fn

local bars = {} -- window -> what its bar says, to be drawn again when its width changes

-- Draw a bar that fits: the hint whole, and as much of who proposed the edit of which file as has room beside it.
local function draw_bar(window)
  local hint, highlight, names, label = unpack(bars[window])
  local width = api.nvim_win_get_width(window)
  local function room_beside(text)
    return width - fn.strdisplaywidth((text:gsub("%%#%w+#", ""):gsub("%%%*", "")))
  end
  local waiting = session.count_reviews() - 1
  local counting = hint .. ("%%#Title#%d more%%*  "):format(waiting)
  if hint ~= "" and waiting > 0 and room_beside(counting) > 0 then
    hint = counting
  end
  local room = room_beside(hint)
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

-- Show a bar. `names` are two forms of the same name, the longer one first; `highlight` is their colour.
function session.bar(window, highlight, names, hint, label)
  bars[window] = { hint, highlight, names, label }
  draw_bar(window)
end

function session.draw_bars()
  for window in pairs(bars) do
    if api.nvim_win_is_valid(window) and vim.wo[window].winbar ~= "" then
      draw_bar(window)
    else
      bars[window] = nil
    end
  end
end

api.nvim_create_autocmd({ "VimResized", fn.exists("##WinResized") == 1 and "WinResized" or "WinEnter" }, {
  group = session.group,
  callback = session.draw_bars,
})

local KEYS = " %#Title#:w%* accept  %#Title#:q%* reject  "
local KEYS_WITHOUT_WRITE = " %#Title#:IsthmusDiffAccept%* accept  %#Title#:q%* reject  " -- with `nvim -M` there is no :w
local KEYS_SOON = " %#WarningMsg#:w accepts in a moment%*  "
local KEYS_GO_BACK = " %#WarningMsg#keys still go where you were%*  "

local function keys()
  return vim.o.write and KEYS or KEYS_WITHOUT_WRITE
end

-- Show the bar of a proposal in a window: with what keys do there now, if the review `takes_keys` or is not in front.
function session.bar_of_proposal(window, review, takes_keys)
  local hint = keys()
  if not takes_keys and review.takes_keys_at then -- it is in front
    hint = review.gives_back and KEYS_GO_BACK or KEYS_SOON
  end
  local long, label = review.options.proposed_by, review.options.label
  if review.is_unified then -- no window beside it says so
    label = label .. (review.options.is_new and ", new file" or "") .. (review.unsaved or "")
  end
  session.bar(window, "DiffAdd", { long, (long:gsub("^proposed ", "")) }, hint, label)
end
