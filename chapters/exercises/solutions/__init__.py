"""One worked answer for each exercise. Look here last."""
