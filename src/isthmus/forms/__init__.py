"""Forms that a server asks a user to fill in: read from a JSON schema, and the formats of their fields."""
