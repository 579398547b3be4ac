-- Sessions that the user saves with `:mksession` while reviews are open: restoring one shows no windows of reviews, which
-- nobody could decide then. Argument: the session that session.lua made and review.lua completed.
--
-- Neovim writes the windows of a review as empty ones with its name. A command at the end of the file closes them.

local session = ...
local api, fn = vim.api, vim.fn

local COMMAND = [[lua for _, w in ipairs(vim.api.nvim_list_wins()) do local b = vim.api.nvim_win_get_buf(w) ]]
  .. [[if vim.tbl_contains(%s, vim.fn.fnamemodify(vim.api.nvim_buf_get_name(b), ":t")) and not vim.b[b].isthmus_path then ]]
  .. [[pcall(vim.api.nvim_win_close, w, true) pcall(vim.api.nvim_buf_delete, b, { force = true }) end end]]

local function add_command()
  local names = session.review_buffers()
  local path = vim.v.this_session
  if #names == 0 or path == "" then
    return
  end
  local lines = fn.readfile(path)
  local quoted = vim.tbl_map(function(name) return ("%q"):format(name) end, names)
  table.insert(lines, (COMMAND:format("{ " .. table.concat(quoted, ", ") .. " }")))
  fn.writefile(lines, path)
end

if fn.exists("##SessionWritePost") == 1 then -- since Neovim 0.9
  api.nvim_create_autocmd("SessionWritePost", { group = session.group, callback = function() pcall(add_command) end })
end
