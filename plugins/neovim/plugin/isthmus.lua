-- Starts the Isthmus companion with Neovim, so that agent CLIs find this editor. Settings: see lua/isthmus.lua.
if vim.g.loaded_isthmus then
  return
end
vim.g.loaded_isthmus = true
if vim.fn.has("nvim-0.8") == 0 then
  local found = vim.version()
  local message = "Isthmus: Neovim %d.%d.%d is too old: Isthmus needs Neovim 0.8 or newer"
  vim.api.nvim_echo({ { message:format(found.major, found.minor, found.patch), "WarningMsg" } }, true, {})
  return
end
local isthmus = require("isthmus")
isthmus.define_commands()
isthmus.setup()
if vim.v.vim_did_enter == 1 then
  isthmus.autostart()
else
  vim.api.nvim_create_autocmd("VimEnter", { once = true, callback = isthmus.autostart })
end
