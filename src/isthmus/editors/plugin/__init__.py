"""Any editor whose plugin speaks to the companion over standard input and output."""
