"""Model of a group and of an assignment."""
