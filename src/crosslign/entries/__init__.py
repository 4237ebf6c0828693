"""Types of the entries of the configuration, one for each kind."""
