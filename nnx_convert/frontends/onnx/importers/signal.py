"""Importers of the family signal."""
