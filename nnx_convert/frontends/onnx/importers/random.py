"""Importers of the family random."""
