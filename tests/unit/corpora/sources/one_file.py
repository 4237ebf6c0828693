"""A file that tests download."""

from __future__ import annotations

import hashlib

from crosslign.corpora.fetch import fetch_file

BODY = bytes(range(256)) * 800
SHA = hashlib.sha256(BODY).hexdigest()
FILE = {"name": "corpus.zip", "sha256": SHA, "bytes": len(BODY)}


def get(site, dest, file=FILE, mirrors=()):
    return fetch_file("demo", {"url": site.url}, file, dest, mirrors)


def leftovers(dest):
    return sorted(path.name for path in dest.parent.iterdir() if not path.name.endswith(".lock"))
