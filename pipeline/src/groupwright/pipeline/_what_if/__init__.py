"""Replay of the groups' recorded history with other assignors."""
