"""The files by which agent CLIs find an IDE: what they say, which one a CLI takes, and what is the matter."""
