"""One module a command of `crosslign`."""
