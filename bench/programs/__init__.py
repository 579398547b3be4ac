"""The measured servers: ours with a small agent, and its peers. Each prints its URL, then answers questions."""
