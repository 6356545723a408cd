"""Importers of the family attention."""
