"""Where bytes come from: a registry package, a URL, OPUS, a local folder, the hub."""
