-- Starts the Isthmus companion with Neovim, so that agent CLIs find this editor. Settings: see lua/isthmus.lua.
if vim.g.loaded_isthmus then
  return
end
vim.g.loaded_isthmus = true
local isthmus = require("isthmus")
isthmus.define_commands()
if vim.v.vim_did_enter == 1 then
  isthmus.autostart()
else
  vim.api.nvim_create_autocmd("VimEnter", { once = true, callback = isthmus.autostart })
end
