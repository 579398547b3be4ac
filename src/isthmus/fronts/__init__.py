"""Tools of every front: conversations, and the events of a task without gaps."""
