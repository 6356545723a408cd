"""Importers of the family gather."""
