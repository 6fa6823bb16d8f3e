"""The tests of onedraw.methods.fit."""
