"""Importers of the family ml_trees."""
