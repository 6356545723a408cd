"""Importers of the family elementwise."""
