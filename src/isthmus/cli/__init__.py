"""The commands of ``isthmus``, one module each. What they run is put together in ``app``."""
