"""View builders, one a module."""
