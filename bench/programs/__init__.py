"""The servers that are measured: ours with a small agent, and its peers. Each says its URL, then answers questions."""
