"""The literature's methods under attack, one file for each theorem; loaded by an audit alone."""
