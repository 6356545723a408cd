"""A model beside what gives the same values: another engine, an archive, another model; as a whole, or op by op."""
