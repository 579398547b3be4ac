"""Files of a task outside the journal: attachments, outputs and checkpoints, also on other servers."""
