"""Importers of the family rnn."""
