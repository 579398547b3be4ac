"""The workbench: a page for browsers that ``isthmus serve --ui`` carries, and the small API that A2A does not have."""
