"""The importers, by family; each is imported when one of its operators is met."""
