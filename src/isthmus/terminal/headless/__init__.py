"""Runs without a user: messages in, one answer or lines of JSON out."""
