"""What draws of a posterior say of their own uncertainty."""
