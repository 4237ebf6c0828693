"""Numbers, times and lines as people read them."""

import pytest

from crosslign.console import duration


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2, "3 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (3599.7, "1 h 00 min"), (12_000, "3 h 20 min")]
)
def test_durations_read_well(seconds, text):
    assert duration(seconds) == text
