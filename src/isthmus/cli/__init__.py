"""The commands of ``isthmus``, one module each. ``programs`` builds what they run."""
