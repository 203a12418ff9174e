"""Groups under load: members, a producer, a ledger, and checks of a group's guarantees."""
