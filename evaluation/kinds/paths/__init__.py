"""Admitted flows along paths of every length, all at a time: their delays against what each is guaranteed."""
