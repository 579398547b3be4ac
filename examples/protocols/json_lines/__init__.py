"""JSON lines over TCP: an example of a companion protocol."""
