"""JSON-RPC and its like: messages, the requests that wait for a response, and the framing of LSP."""
