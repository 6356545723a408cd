"""Importers of the family pool."""
