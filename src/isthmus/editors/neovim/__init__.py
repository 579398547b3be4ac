"""Neovim as an editor of the companion, over its own RPC, with Lua that is injected."""
