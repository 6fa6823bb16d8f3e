"""Several mechanisms on the same records, released together."""
