"""Importers of the family norm."""
