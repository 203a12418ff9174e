"""Groups under load: members, a producer, a ledger, and the checks of what a group promises."""
