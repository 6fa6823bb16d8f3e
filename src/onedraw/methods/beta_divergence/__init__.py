"""Posteriors of the β-divergence (Jewson, Ghalebikesabi, Holmes)."""
