"""Importers of the family loss."""
