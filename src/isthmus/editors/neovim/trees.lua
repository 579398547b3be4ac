-- The files that the user chose in a file tree: marked there, in a range of lines, or under the cursor. Argument: the
-- session that session.lua made.
--
-- Each tree has an entry below, by its 'filetype'. It is asked by its own functions, which may be missing or different in
-- another version: then the user is told so.

local session = ...
local api, fn = vim.api, vim.fn

local function each_line(first, last, read) -- the cursor and the view stay
  local view, found = fn.winsaveview(), {}
  for line = first, last do
    api.nvim_win_set_cursor(0, { line, 0 })
    found[#found + 1] = read(line)
  end
  fn.winrestview(view)
  return found
end

local netrw = { name = "netrw" }

function netrw.marked()
  local marked = fn["netrw#Expose"]("netrwmarkfilelist")
  return type(marked) == "table" and vim.tbl_map(function(path) return fn.fnamemodify(path, ":p") end, marked) or {}
end

function netrw.lines(first, last)
  local folder = vim.b.netrw_curdir or fn.getcwd()
  local is_tree = vim.w.netrw_liststyle == 3
  return each_line(first, last, function(line)
    if line < (vim.w.netrw_bannercnt or 0) then
      return nil
    end
    local name = fn["netrw#Call"]("NetrwGetWord")
    if is_tree then
      local parent = fn["netrw#Call"]("NetrwTreePath", vim.w.netrw_treetop)
      return name:match("/$") and parent or parent .. name
    end
    return name ~= "" and (name:match("^/") and name or folder:gsub("/$", "") .. "/" .. name) or nil
  end)
end

local nvim_tree = { name = "nvim-tree" }

function nvim_tree.marked() -- which it keeps in no order
  local paths = vim.tbl_map(function(node) return node.absolute_path end, require("nvim-tree.api").marks.list())
  table.sort(paths)
  return paths
end

function nvim_tree.lines(first, last)
  return each_line(first, last, function()
    local node = require("nvim-tree.api").tree.get_node_under_cursor()
    return node and node.name ~= ".." and node.absolute_path or nil
  end)
end

local neo_tree = { name = "neo-tree" }

function neo_tree.lines(first, last)
  local state = require("neo-tree.sources.manager").get_state_for_window()
  local found = {}
  for line = first, last do
    local node = state and state.tree and state.tree:get_node(line)
    if node and (node.type == "file" or node.type == "directory") then
      found[#found + 1] = node.path or node:get_id()
    end
  end
  return found
end

local oil = { name = "oil.nvim" }

function oil.lines(first, last)
  local folder = require("oil").get_current_dir(0)
  if not folder then
    error("the folder is not on this machine", 0)
  end
  local found = {}
  for line = first, last do
    local entry = require("oil").get_entry_on_line(0, line)
    if entry and entry.name and entry.name ~= ".." then
      found[#found + 1] = folder .. entry.name
    end
  end
  return found
end

local mini_files = { name = "mini.files" }

function mini_files.lines(first, last)
  local found = {}
  for line = first, last do
    local entry = require("mini.files").get_fs_entry(0, line)
    found[#found + 1] = entry and entry.path or nil
  end
  return found
end

local snacks = { name = "snacks.nvim" } -- its explorer and its pickers of files

local function picker_here()
  local window, found = api.nvim_get_current_win(), require("snacks").picker.get({ tab = true })
  for _, picker in ipairs(found) do
    for _, part in ipairs({ picker.list, picker.input }) do
      if part and part.win and part.win.win == window then
        return picker
      end
    end
  end
  return found[#found]
end

local function paths_of(picker, items)
  local found = {}
  for _, item in ipairs(items) do
    found[#found + 1] = require("snacks").picker.util.path(picker.resolve and picker:resolve(item) or item)
  end
  return found
end

function snacks.marked()
  local picker = picker_here()
  return picker and paths_of(picker, picker:selected({ fallback = false })) or {}
end

function snacks.lines(first, last, is_range)
  local picker = picker_here()
  if not (picker and is_range) then
    return picker and paths_of(picker, picker:selected({ fallback = true })) or {}
  end
  local items = {}
  for line = first, last do
    items[#items + 1] = picker.list:get(picker.list:row2idx(line))
  end
  return paths_of(picker, items)
end

local dirvish = { name = "vim-dirvish" } -- its lines are the paths

function dirvish.lines(first, last)
  return api.nvim_buf_get_lines(0, first - 1, last, false)
end

local TREES = {
  netrw = netrw, NvimTree = nvim_tree, ["neo-tree"] = neo_tree, oil = oil, minifiles = mini_files,
  snacks_picker_list = snacks, snacks_picker_input = snacks, dirvish = dirvish,
}

-- Return the paths that the user chose in the tree in this window: of the lines of `command` (of a user command) if it has
-- a range, else the marked ones, else the one under the cursor. Return nil if this is no tree, or nil and why there is
-- none.
function session.chosen_in_tree(command)
  local tree = TREES[vim.bo.filetype]
  if not tree then
    return nil
  end
  local is_range, line = command.range > 0, fn.line(".")
  local first, last = is_range and command.line1 or line, is_range and command.line2 or line
  local ok, found = pcall(function()
    local marked = not is_range and tree.marked and tree.marked() or {}
    return #marked > 0 and marked or tree.lines(first, last, is_range)
  end)
  if not ok then
    return nil, ("%s did not tell which file is meant: %s"):format(tree.name, tostring(found):match("[^\n]*"))
  end
  local paths, seen = {}, {}
  for _, path in ipairs(found) do
    path = fn.fnamemodify(path, ":p")
    if not seen[path] and (fn.filereadable(path) == 1 or fn.isdirectory(path) == 1) then
      seen[path] = true
      paths[#paths + 1] = path
    end
  end
  if #paths == 0 then
    return nil, ("no file is under the cursor in %s; go to one, or mark some"):format(tree.name)
  end
  return paths
end
