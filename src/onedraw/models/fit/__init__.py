"""A fit: the minimum of a convex loss with noise, its sums, and what is published of it."""
