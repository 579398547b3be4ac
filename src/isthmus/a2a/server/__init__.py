"""The A2A server: what a client reaches over HTTP, who may, and how answers are written."""
