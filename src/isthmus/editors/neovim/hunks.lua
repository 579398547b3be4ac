-- Hunks of a review as units that are accepted or rejected: a rejected one has the lines of the file on disk, an accepted
-- one those of the proposal. Both only edit the text; `:w` accepts what is there then. Argument: the session that
-- session.lua made and review.lua completed.

local session = ...
local api = vim.api
local compare = vim.text and vim.text.diff or vim.diff -- the name since 0.12

local function whole(lines)
  return #lines == 1 and lines[1] == "" and "" or table.concat(lines, "\n") .. "\n"
end

-- Return the hunks in which `lines` differ from `others`: {start, count, other start, other count}, lines from 0.
local function hunks_between(lines, others)
  local found = compare(whole(lines), whole(others), { result_type = "indices" })
  for _, hunk in ipairs(found) do -- of an empty side it names the line before
    hunk[1] = hunk[1] - (hunk[2] > 0 and 1 or 0)
    hunk[3] = hunk[3] - (hunk[4] > 0 and 1 or 0)
  end
  return found
end

session.hunks_between = hunks_between

local function overlap(one, other) -- on the side from which both were compared; an empty one touches its neighbours
  local start, after, other_start, other_after = one[1], one[1] + one[2], other[1], other[1] + other[2]
  if start == after or other_start == other_after then
    return start <= other_after and other_start <= after
  end
  return start < other_after and other_start < after
end

-- Return the number of hunks of a proposal, how many of them are in `lines` as proposed, and how many lines the proposal
-- adds and removes.
function session.count_hunks(options, lines)
  local proposed, taken, added, removed = options.proposed.lines, 0, 0, 0
  local hunks, changes = hunks_between(proposed, options.current.lines), hunks_between(proposed, lines)
  for _, hunk in ipairs(hunks) do
    added, removed = added + hunk[2], removed + hunk[4]
    local is_changed = false
    for _, change in ipairs(changes) do
      is_changed = is_changed or overlap(hunk, change)
    end
    taken = taken + (is_changed and 0 or 1)
  end
  return #hunks, taken, added, removed
end

-- Return those of the hunks that lines `first` to `last` (from 0) touch; `at` is where their lines begin in a hunk. Lines
-- that are missing are touched by both neighbours, unless another hunk has the line itself.
local function touched(hunks, at, first, last)
  local exact, near = {}, {}
  for _, hunk in ipairs(hunks) do
    local start, count = hunk[at], hunk[at + 1]
    if count > 0 and start <= last and first < start + count then
      exact[#exact + 1] = hunk
    elseif count == 0 and first <= start and start - 1 <= last then
      near[#near + 1] = hunk
    end
  end
  if first < last then
    for _, hunk in ipairs(near) do
      exact[#exact + 1] = hunk
    end
    table.sort(exact, function(one, other) return one[1] < other[1] end)
  end
  return #exact > 0 and exact or near
end
session.touched_hunks = touched

-- Accept or reject the hunks on lines `first` to `last` (from 1) of the side of a review in the current window. Return nil
-- without a review there, else the number of hunks that have changed.
function session.decide_hunks(accepting, first, last)
  local review = session.review_here()
  if not review or not api.nvim_buf_is_loaded(review.proposed) then
    return nil
  end
  local lines = api.nvim_buf_get_lines(review.proposed, 0, -1, false)
  local is_old_side = api.nvim_get_current_buf() ~= review.proposed
  local source = accepting and review.options.proposed or review.options.current
  local hunks = hunks_between(lines, source.lines)
  if is_old_side and not accepting then
    hunks = touched(hunks, 3, first - 1, last - 1)
  elseif is_old_side then -- the lines of the file lead to those of the proposal, and these to the text
    local wanted = touched(hunks_between(review.options.proposed.lines, review.options.current.lines), 3, first - 1, last - 1)
    hunks = vim.tbl_filter(function(hunk)
      for _, each in ipairs(wanted) do
        if hunk[3] <= each[1] + each[2] and each[1] <= hunk[3] + hunk[4] then
          return true
        end
      end
      return false
    end, hunks)
  else
    hunks = touched(hunks, 1, first - 1, last - 1)
  end
  for index = #hunks, 1, -1 do
    local start, count, from, size = unpack(hunks[index])
    local is_last = start + count >= #lines and from + size >= #source.lines
    api.nvim_buf_set_lines(review.proposed, start, start + count, false, vim.list_slice(source.lines, from + 1, from + size))
    if is_last then
      vim.bo[review.proposed].endofline = source.endofline
    end
  end
  if #hunks == 1 and not is_old_side then -- so that the other command finds it again
    local last = api.nvim_buf_line_count(review.proposed)
    api.nvim_win_set_cursor(0, { math.min(hunks[1][1] + 1, last), 0 })
  end
  if #hunks > 0 then
    pcall(vim.cmd, "diffupdate")
    session.note_edit(review)
  end
  return #hunks
end
