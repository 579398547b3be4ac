"""The process itself: child processes, threads, and the end of a server."""
