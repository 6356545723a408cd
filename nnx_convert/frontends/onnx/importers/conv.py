"""Importers of the family conv."""
