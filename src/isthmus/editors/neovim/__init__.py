"""Editor of the companion that is a Neovim, over its own RPC, with injected Lua."""
