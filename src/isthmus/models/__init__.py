"""Language models behind one port; one module per provider, imported only when chosen."""
