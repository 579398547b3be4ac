"""Reviews of edits that agents propose and the user decides: state machine, queue, and text typed by the user."""
