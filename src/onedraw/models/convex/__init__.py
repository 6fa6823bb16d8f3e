"""Convex losses of bounded rows: what a Gibbs posterior, a noisy gradient and a fit are made of."""
