"""Random programs, run on both consumers, compared, and made small where they differ."""
