"""Selection among public candidates in place of a posterior draw."""
