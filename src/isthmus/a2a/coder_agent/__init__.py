"""The dialect of gemini-cli-a2a-server, whose key in metadata is ``coderAgent``, for server and client."""
