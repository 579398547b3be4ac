"""Text as users, editors and models see it: files of text, diffs, offsets, units, and text that is safe to show."""
