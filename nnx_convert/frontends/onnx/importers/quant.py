"""Importers of the family quant."""
