"""Importers of the family control."""
