"""The tests of onedraw.methods."""
