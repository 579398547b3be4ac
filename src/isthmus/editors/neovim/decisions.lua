-- Decisions by commands: of the review in the current window, of the only one, or of all of an agent. Argument: the session
-- that session.lua made and review.lua completed.

local session = ...
local api = vim.api
local focus, tell = session.focus, session.tell

-- Decide by command: the review of the current window, or else, unless only that one is meant, the only one. If another
-- review was there when the command began, which was meant for that one, accepting is refused. Keys that mean only the
-- current window may be mapped, so that they accept nothing that could not be read yet.
function session.decide_here(accepting, is_here)
  local waiting, current = session.ordered_reviews(), api.nvim_get_current_buf()
  local found, count = nil, 0
  for _, review in ipairs(waiting) do
    count = count + 1
    if review.proposed == current or review.current == current then
      found = review
    end
  end
  found = found or (count == 1 and not is_here and waiting[1] or nil)
  local began = focus.began()
  local foreign = focus.why_not_users()
  local reason = found and is_here and focus.why_not(found, true)
  if found and foreign then
    tell(("the edit of %s is not decided: %s; once more does so"):format(found.options.label, foreign))
  elseif found and accepting and began and began < session.last_closed() then
    tell("nothing is accepted: another review ended while you typed; once more accepts " .. found.options.label)
  elseif found and accepting and reason then
    tell(("the edit of %s is not accepted: %s; once more accepts"):format(found.options.label, reason))
  elseif found then
    session.answer_review(found, accepting)
  end
  return found ~= nil
end

-- Decide all reviews for which `is_meant(review)` is true, but those that came after the command began. Return how many were
-- decided, and how many were left; or nil and why none was.
function session.decide_all(accepting, is_meant)
  local foreign, began, count, left = focus.why_not_users(), focus.began(), 0, 0
  if foreign then
    return nil, ("nothing is decided: %s; once more does so"):format(foreign)
  end
  for _, review in ipairs(session.ordered_reviews()) do
    if not is_meant(review) then
      -- another agent's
    elseif began and review.shown_at > began then
      left = left + 1
    else
      count = count + 1
      session.answer_review(review, accepting, true)
    end
  end
  return count, left
end

function session.has_reviews()
  return session.count_reviews() > 0
end
