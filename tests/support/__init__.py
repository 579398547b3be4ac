"""Helpers and fakes that tests of every room share; imported as `from support.x import y`."""
