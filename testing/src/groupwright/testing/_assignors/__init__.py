"""Trials of an assignor: groups to assign, and the checks of what comes out."""
