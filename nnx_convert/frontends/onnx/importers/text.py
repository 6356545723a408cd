"""Importers of the family text."""
