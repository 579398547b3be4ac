"""Consent to a project's files: their items that need it, and a record of those that the user agreed to."""
