"""Editor of the companion that is a Jupyter server or kernel."""
