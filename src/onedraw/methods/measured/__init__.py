"""Another method in privately measured coordinates."""
