"""Gibbs posteriors of convex losses (Minami, Arai, Sato), and noisy gradients towards them."""
