"""Commands and the last jobs of the smallest run stand what others write beside them, 200 times each."""

import pytest
from beside import beside
from fuzz import finished_mini


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_commands_and_the_last_jobs_stand_what_is_written_beside_them_200_times(tmp_path):
    found = beside(finished_mini(tmp_path / "mini"), 200, tmp_path, print)
    assert not found, "\n".join(found)
