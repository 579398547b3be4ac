"""Models over OpenAI's two protocols, Chat Completions and Responses."""
