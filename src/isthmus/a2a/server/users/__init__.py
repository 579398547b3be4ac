"""Users of a server: how they sign in, and how much they may use."""
