"""Importers of the family microsoft."""
