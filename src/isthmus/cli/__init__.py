"""One module per command; the only place that composes everything."""
