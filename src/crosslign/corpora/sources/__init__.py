"""Where bytes come from: a registry package, a URL, a local folder, the hub."""
