"""What is said and written about a model: reports, and the pages made from the table."""
