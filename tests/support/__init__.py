"""Helpers and fakes that tests of every package share; imported as `from support.x import y`."""
