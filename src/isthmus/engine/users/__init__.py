"""Tasks and commands of one user."""
