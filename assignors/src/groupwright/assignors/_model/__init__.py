"""Model of a group and of its assignment."""
