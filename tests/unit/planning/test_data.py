"""Files of a plan by state, for people and as CSV."""

from pathlib import Path

from crosslign.config.data_plan import FileNeed
from crosslign.planning.data import data_lines, files_csv


def test_a_plan_lists_sources_by_state():
    def need(source, file, state, users=("c",), size=None):
        origin = f"https://a.org/{source}/{file}"
        return FileNeed(source, file, Path("d", source, file), size, None, "", "MIT", origin, state, users)

    needs = [
        need("s", "a.gz", "fetch", ("c1", "c2", "c3"), 1000),
        need("s", "b.gz", "fetch", ("c3", "c4", "c5"), 500),
        need("s", "c.gz", "here", size=2),
        need("t", "d.gz", "synthetic", size=10**9),
        need("u", "e.gz", "withdrawn"),
    ]
    assert list(data_lines(needs)) == [
        "data",
        "  here           1 file   2 B",
        "    s: 1 file, 2 B, MIT, -> d/s; used by c",
        "  synthetic      1 file   small, generated at this scale",
        "  fetch          2 files  1.5 kB",
        "    s: 2 files, 1.5 kB, MIT, from https://a.org/s/; used by c1, c2, c3, c4 and 1 more",
        "  withdrawn      1 file   size unknown",
        "    u: 1 file, size unknown, MIT, -> d/u; used by c",
    ]


def test_files_are_listed_for_a_machine_without_network():
    path = Path("results", "downloads", "s", "a.gz")
    known = FileNeed("s", "a.gz", path, 5, None, "0f", "CC0, or MIT", "https://a.org/a.gz", "fetch", ("c", "d"), "", "s/a.gz")
    hand = FileNeed("t", "b.txt", Path("data", "b.txt"), None, 20, "", "MIT", "data/b.txt", "by hand", ("e",), "ask them", "t/b.txt")
    assert files_csv([known, hand]) == (
        "state,source,file,in_mirror,path,bytes,about_bytes,sha256,origin,licence,used_by\n"
        'fetch,s,a.gz,s/a.gz,results/downloads/s/a.gz,5,,0f,https://a.org/a.gz,"CC0, or MIT",c d\n'
        "by hand,t,b.txt,t/b.txt,data/b.txt,,20,,data/b.txt,MIT,e\n"
    )
