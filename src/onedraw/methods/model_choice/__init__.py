"""One of several settings, selected by loss."""
