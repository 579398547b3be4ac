"""HTTP requests and answers: bodies, paths, origins and event streams."""
