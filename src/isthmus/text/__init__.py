"""Text as users, editors and models see it: files, diffs, offsets, units, thoughts, and text that is safe to show."""
