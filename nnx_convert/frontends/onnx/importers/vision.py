"""Importers of the family vision."""
