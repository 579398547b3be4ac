"""Editor implementations, one file each, behind :class:`isthmus.ide.editor.Editor`."""
