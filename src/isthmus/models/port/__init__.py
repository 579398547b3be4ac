"""The port of models: requests, and messages as they are received."""
