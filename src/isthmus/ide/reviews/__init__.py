"""Edits that agents propose and a user decides: the state machine, the queue, and the texts typed by the user."""
