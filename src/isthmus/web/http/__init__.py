"""The files of the page, and answers and refusals of its API."""
