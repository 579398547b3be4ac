"""A session: the conversation and its state, folded from events, and the turn that emits them."""
