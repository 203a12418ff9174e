"""Kafka's sticky assignors, exact: balance first, then racks, then as few moves as can be.

The way of an assignment, a module a step:

- `userdata`: what members of `sticky` and old members of `cooperative-sticky` say they own, and since when;
- `claims`: which of those claims hold;
- `rows`: partitions that may take each other's place, counted instead of listed;
- `balance`: how many partitions each member gets, and between whom a partition may still change hands;
- `keep`: how many of which row each member gets, so that racks match and partitions stay;
- `spread`: which partitions those are;
- `network`: the minimum-cost flow that `balance` and `keep` solve;
- `assignors`: the two assignors.
"""
