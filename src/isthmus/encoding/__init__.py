"""Values as JSON: typed values, bounded parsing, schemas, and JSON with comments."""
