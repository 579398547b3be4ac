"""Edits that agents propose and a user decides: the state machine, the queue, and what was typed."""
