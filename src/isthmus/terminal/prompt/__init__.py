"""The prompt that a user types into: completion, history, pasted texts and images."""
