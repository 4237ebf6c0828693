"""What the names of published files say."""

from __future__ import annotations

import re

from crosslign.errors import InputError

PLACE = "<language>"
CODE = "([A-Za-z]{2,3}(?:-[A-Za-z]+)?)"


def language_in(name: str, form: str) -> str:
    """Return the language code that a file's name says, as it stands there.

    Args:
        name: the file's name.
        form: the name that is expected, with `<language>` in the code's place.

    Raises:
        InputError: the name has another form.
    """
    found = re.fullmatch(re.escape(form).replace(PLACE, CODE), name)
    if not found:
        raise InputError(f"{name!r} names no language", why=f"expected {form}")
    return found[1]
