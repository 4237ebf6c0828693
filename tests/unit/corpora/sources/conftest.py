"""Every test of sources may fetch."""

import pytest
from one_file import BODY


@pytest.fixture(autouse=True)
def _online(online):
    """Takes effect for all tests of this folder."""


@pytest.fixture
def dest(tmp_path):
    return tmp_path / "downloads" / "demo" / "corpus.zip"


@pytest.fixture
def there(site):
    site.body = BODY
    return site
