-- Buffers follow the disk: what another program wrote is read again, as `:checktime` does. Argument: the session that
-- session.lua made.
--
-- Unsaved changes are never touched, and nothing happens without 'autoread', unless the user has autocommands of their
-- own for such files. A buffer in which the user types or selects is read when they are done.

local session = ...
local api, fn = vim.api, vim.fn
local group = session.group

local waiting = {} -- buffer -> true

local function is_in_use(buffer)
  local mode = api.nvim_get_mode().mode
  return buffer == api.nvim_get_current_buf() and not (mode == "n" or mode:match("^nt") or mode:match("^t"))
end

local function has_servers(buffer)
  local lsp = package.loaded["vim.lsp"] -- without it there are none, and to load it takes a while
  local clients = lsp and (lsp.get_clients or lsp.get_active_clients)
  return clients ~= nil and next(clients({ bufnr = buffer })) ~= nil
end

-- Returns whether the buffer has a new text.
local function read_again(buffer)
  local theirs = #api.nvim_get_autocmds({ event = "FileChangedShell" }) > 0
  local reads = fn.getbufvar(buffer, "&autoread") == 1
  if not (reads or theirs or vim.bo[buffer].modified) then
    return false -- Neovim asks the user when it looks by itself
  end
  local before, known = api.nvim_buf_get_changedtick(buffer), vim.b[buffer].isthmus_changed_on_disk
  local reason = session.changed_on_disk(buffer, theirs)
  if not api.nvim_buf_is_loaded(buffer) then
    return false
  end
  if reason == "conflict" and known == nil and vim.bo[buffer].modified then
    local name = fn.fnamemodify(api.nvim_buf_get_name(buffer), ":~:.")
    session.tell(name .. " changed on disk; your changes are kept. :e! takes the file, :w! your text", vim.log.levels.WARN)
  end
  return api.nvim_buf_get_changedtick(buffer) ~= before
end

function session.reload(paths)
  local checked = {}
  for _, path in ipairs(paths) do
    local buffer = session.find_buffer(path)
    if buffer and api.nvim_buf_is_loaded(buffer) then
      if is_in_use(buffer) then
        waiting[buffer] = true
      elseif read_again(buffer) and has_servers(buffer) then
        checked[#checked + 1] = path
      end
    end
  end
  return checked
end

api.nvim_create_autocmd({ "ModeChanged", "BufLeave" }, {
  group = group,
  callback = vim.schedule_wrap(function()
    for buffer in pairs(waiting) do
      if not api.nvim_buf_is_loaded(buffer) then
        waiting[buffer] = nil
      elseif not is_in_use(buffer) then
        waiting[buffer] = nil
        read_again(buffer)
      end
    end
  end),
})
