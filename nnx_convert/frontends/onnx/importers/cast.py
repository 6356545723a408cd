"""Importers of the family cast."""
