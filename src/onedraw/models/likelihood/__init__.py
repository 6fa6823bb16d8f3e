"""Models with a likelihood of bounded density: what a β-divergence posterior is made of."""
