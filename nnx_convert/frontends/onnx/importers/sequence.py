"""Importers of the family sequence."""
