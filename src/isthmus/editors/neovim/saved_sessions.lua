-- Sessions that the user saves with `:mksession` while reviews or agents are open: restoring one shows none of their
-- windows, in which nothing could be decided or said then. Argument: the session that session.lua made and review.lua
-- completed.
--
-- Neovim writes these windows as empty ones with their names. A command at the end of the file closes them.

local session = ...
local api, fn = vim.api, vim.fn

local COMMAND = [[lua for _, b in ipairs(vim.api.nvim_list_bufs()) do ]]
  .. [[local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(b), ":t") ]]
  .. [[if vim.tbl_contains(%s, name) and not (vim.b[b].isthmus_path or vim.b[b].isthmus_agent) then ]]
  .. [[for _, w in ipairs(vim.fn.win_findbuf(b)) do pcall(vim.api.nvim_win_close, w, true) end ]]
  .. [[pcall(vim.api.nvim_buf_delete, b, { force = true }) end end]]

local function add_command()
  local names = {}
  for _, buffer in ipairs(api.nvim_list_bufs()) do
    local variables = vim.b[buffer]
    if variables.isthmus_path or variables.isthmus_agent or variables.isthmus_question then
      names[#names + 1] = ("%q"):format(fn.fnamemodify(api.nvim_buf_get_name(buffer), ":t"))
    end
  end
  local path = vim.v.this_session
  if #names > 0 and path ~= "" then
    local lines = fn.readfile(path)
    table.insert(lines, (COMMAND:format("{ " .. table.concat(names, ", ") .. " }")))
    fn.writefile(lines, path)
  end
end

if fn.exists("##SessionWritePost") == 1 then -- since Neovim 0.9
  api.nvim_create_autocmd("SessionWritePost", { group = session.group, callback = function() pcall(add_command) end })
end
