"""Another version of an installed package, by its metadata alone."""

import shutil
import sys
from importlib.metadata import distributions


def renamed(folder, package, version, *places):
    """Lay metadata of another version of a package, whose code stays, into a folder that comes before others; return the folder."""
    known = next(iter(distributions(name=package, path=[*places, *sys.path])))
    made = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    shutil.copytree(known._path, made)
    text = (made / "METADATA").read_text(encoding="utf-8")
    changed = text.replace(f"\nVersion: {known.version}\n", f"\nVersion: {version}\n")
    assert changed != text
    (made / "METADATA").write_text(changed, encoding="utf-8")
    return str(folder)
