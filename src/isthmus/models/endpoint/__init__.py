"""Providers and their endpoints: addresses, keys, HTTP, retries, failures and names of models."""
