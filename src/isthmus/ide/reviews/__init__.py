"""Edits that agents propose and a person decides: the state machine, the queue, and what was typed."""
