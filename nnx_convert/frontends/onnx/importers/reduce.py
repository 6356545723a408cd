"""Importers of the family reduce."""
