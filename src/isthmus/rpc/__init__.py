"""JSON-RPC and its like: messages, requests that wait for a response, LSP's framing, and a debug log."""
