"""Questions to a user, as choices and fields, and what a user typed before them. No terminal is needed."""
