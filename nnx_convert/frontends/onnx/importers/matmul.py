"""Importers of the family matmul."""
