"""The table of models (models.json), made by scripts/model_table.py: limits, prices, efforts and ends, by provider."""
