"""Importers of the family shape."""
