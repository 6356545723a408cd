"""Importers of the family ml_linear."""
