"""Importers of the family training."""
