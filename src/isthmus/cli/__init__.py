"""The commands of ``isthmus``, one module each. ``app`` builds what they run."""
