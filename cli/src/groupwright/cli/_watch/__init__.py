"""The group that `groupwright watch` shows: observations in, events and pictures out; and how both are shown."""
