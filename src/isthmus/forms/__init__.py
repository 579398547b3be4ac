"""Forms that a server asks a user to fill in: their fields, their JSON schema, and the check of the user's values."""
