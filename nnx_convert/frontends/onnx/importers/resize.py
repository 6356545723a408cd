"""Importers of the family resize."""
