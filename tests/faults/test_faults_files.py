"""Disks that are full or read-only, files cut, damaged or hostile: no wrong file under a final name, and a message that helps."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from crosslign.corpora import READERS
from crosslign.corpora.archives import extract_folder, extract_member
from crosslign.corpora.pipeline import filter_work
from crosslign.corpora.readers._lines import read_lines
from crosslign.errors import InputError, ResourceError
from crosslign.files import atomic_folder, atomic_path, write_batches, write_json, write_rows, write_text
from crosslign.files.atomic import require_writable
from crosslign.files.rows import SCHEMAS
from crosslign.workers import Workers

MEGABYTE = 1 << 20


def rows_of(size: int) -> pa.Table:
    noise = np.random.default_rng(0).integers(33, 126, size, dtype=np.uint8).tobytes().decode("ascii")
    texts = [noise[i : i + 1000] for i in range(0, size, 1000)]
    return pa.table({"id": [str(i) for i in range(len(texts))], "lang": ["en"] * len(texts), "text": texts})


def save_array(path: Path) -> None:
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.save(file, np.zeros(MEGABYTE), allow_pickle=False)


def save_tensors(path: Path) -> None:
    import torch

    from crosslign.training.checkpoint import save_tensors as save

    with atomic_folder(path) as temporary:
        save(temporary / "model.safetensors", {"weight": torch.zeros(MEGABYTE)})


WRITERS = {
    "text": lambda path: write_text(path, "x" * (8 * MEGABYTE)),
    "json": lambda path: write_json(path, ["x" * (8 * MEGABYTE)]),
    "rows": lambda path: write_rows(path, rows_of(8 * MEGABYTE), "mono"),
    "array": save_array,
    "tensors": save_tensors,
}

KILLED = """
import os, resource, signal, sys
from pathlib import Path
import test_faults_files as t
def stop(*_): os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "in the middle":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (t.MEGABYTE, t.MEGABYTE))
elif sys.argv[2] == "before the flush": os.fsync = stop
else: Path.replace = stop
t.WRITERS[sys.argv[1]](Path(sys.argv[3]) / "out")
"""


@pytest.mark.parametrize("moment", ["in the middle", "before the flush", "before the rename"])
@pytest.mark.parametrize("writer", WRITERS)
def test_f01_a_killed_writer_leaves_no_final_name(forks, tmp_path, writer, moment):
    """In the middle the kernel kills it, at the byte where a limit of file sizes ends: in Python, Arrow and safetensors alike."""
    done = forks.run(KILLED, writer, moment, tmp_path)
    assert done.returncode == -(signal.SIGXFSZ if moment == "in the middle" else signal.SIGKILL)
    assert not (tmp_path / "out").exists()
    left = max(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert left <= MEGABYTE if moment == "in the middle" else left > MEGABYTE
    WRITERS[writer](tmp_path / "out")
    WRITERS[writer](tmp_path / "again")
    first, second = (sorted(p.read_bytes() for p in ([f] if f.is_file() else f.rglob("*"))) for f in (tmp_path / "out", tmp_path / "again"))
    assert first == second


@pytest.mark.parametrize("writer", WRITERS)
def test_f10_a_full_disk_leaves_nothing_and_names_the_bytes(tmpfs, writer):
    disk = tmpfs("2m")
    (disk / "old").write_text("old")
    with pytest.raises(ResourceError, match=r"space.*bytes.*crosslign plan"):
        WRITERS[writer](disk / "new")
    assert [path.name for path in disk.iterdir()] == ["old"]


LIMITED = """
import resource, sys
from pathlib import Path
import test_faults_files as t
resource.setrlimit(resource.RLIMIT_FSIZE, (t.MEGABYTE, t.MEGABYTE))
try: t.WRITERS[sys.argv[1]](Path(sys.argv[2]) / "out")
except t.ResourceError as error: print(error)
"""


@pytest.mark.parametrize("writer", WRITERS)
def test_f10_a_file_that_may_not_grow_so_large_leaves_nothing_and_names_the_limit(forks, tmp_path, writer):
    """Python ignores the signal of such a limit: each writer meets the error in its own way, and the disk itself is not full."""
    done = forks.run(LIMITED, writer, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "out: the file exceeds the size limit" in done.stdout
    assert "the limit is 1,048,576. Raise the limit (ulimit -f)" in done.stdout
    assert not list(tmp_path.iterdir())


def test_f11_a_read_only_disk_is_said_at_once(tmpfs):
    disk = tmpfs("2m")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for fault in (lambda: require_writable(disk / "results"), lambda: write_text(disk / "a.txt", "x")):
        with pytest.raises(ResourceError, match="Read-only file system"):
            fault()


READS = """
import sys
from crosslign.jobs.frame import execute
from crosslign.stages.mine_texts import mine_texts
recipe = {"lang": "de", "dedup": "text", "limit": None, "licence": "CC0-1.0"}
params, outputs = [("root", "results"), ("recipe", recipe)], [("rows", "results/rows.parquet")]
execute(mine_texts, inputs=[("file", "own.de")], outputs=outputs, params=params, threads=1, log="results/job.log")
"""


def test_f11_a_file_that_may_not_be_read_is_named_by_its_job(nobody, tmp_path):
    (tmp_path / "own.de").write_text("Guten Tag.\n", encoding="utf-8")
    (tmp_path / "own.de").chmod(0)
    done = subprocess.run([*nobody, sys.executable, "-c", READS], cwd=tmp_path, capture_output=True, text=True, check=False)
    said = "own.de: cannot be read; Permission denied. Change its permissions, or ask its owner to"
    assert (done.returncode, done.stderr) == (4, f"[mine_texts job] {said}\n")
    assert f"ERROR crosslign: {said}\n" in (tmp_path / "results" / "job.log").read_text(encoding="utf-8")
    assert not (tmp_path / "results" / "rows.parquet").exists()


SNAKEMAKE = ["-m", "snakemake", "-n", "--cores", "1"]
CLOSED = {
    "config/papers": SNAKEMAKE,
    "results/mini/scores": SNAKEMAKE,
    "results/mini/systems": SNAKEMAKE,
    "config": ["-c", "from crosslign.cli.main import main; import sys; sys.exit(main(['plan', '--files']))"],
}


@pytest.mark.parametrize("folder", CLOSED)
def test_f11_a_folder_of_another_user_is_named_in_one_line(copy, nobody, folder):
    before = set(copy.folder.rglob("*"))
    (copy.folder / folder).chmod(0o400)
    command = [*nobody, sys.executable, *CLOSED[folder]]
    done = subprocess.run(command, cwd=copy.folder, env=copy.environment(), capture_output=True, text=True, check=False)
    (copy.folder / folder).chmod(0o755)
    (said,) = [line for line in done.stderr.splitlines() if "rror" in line]
    assert (done.returncode, "Traceback" in done.stderr) == (4, False)
    assert said.startswith("error: ")
    assert f"{folder}: cannot be read; Permission denied. Change its permissions, or ask its owner to" in said
    assert before <= set(copy.folder.rglob("*"))


def test_f11_a_result_that_is_a_link_to_itself_is_named_in_one_line(copy):
    table = copy.results / "tables" / "faults.md"
    table.unlink()
    table.symlink_to(table.name)
    done = copy.run("-n", check=False)
    (said,) = [line for line in done.stdout.splitlines() if "rror" in line]
    assert said.startswith("error: results/mini/tables/faults.md: the link leads to itself. Remove the link")


def test_f11_scores_of_another_user_stay_and_are_named_by_discard(copy, nobody):
    before = set(copy.folder.rglob("*"))
    scores = copy.results / "scores"
    scores.chmod(0o400)
    call = f"import sys; from crosslign.cli.main import main; sys.exit(main(['verify', '--discard', {str(copy.results)!r}]))"
    command = [*nobody, sys.executable, "-c", call]
    done = subprocess.run(command, cwd=copy.folder, env=copy.environment(), capture_output=True, text=True, check=False)
    scores.chmod(0o755)
    assert (done.returncode, done.stderr) == (1, "")
    assert "cannot be read, and stays: scores/F-A-s42 (Permission denied)" in done.stdout.splitlines()
    assert "discarded: " not in done.stdout
    assert before <= set(copy.folder.rglob("*"))


def test_f11_results_where_no_folder_can_be_are_an_error_for_people(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in ("file", "file/deeper", "x" * 300):
        with pytest.raises(ResourceError, match="written"):
            require_writable(tmp_path / place)


def test_f11_a_folder_that_may_be_written_to_is_left_as_it_was(tmp_path):
    require_writable(tmp_path / "results")
    assert list((tmp_path / "results").iterdir()) == []


HOSTILE = {
    "a path upwards": ("../evil", b"x", None),
    "an absolute path": ("/tmp/crosslign-evil", b"x", None),
    "a link": ("link", b"", tarfile.SYMTYPE),
    "a hard link": ("hard", b"", tarfile.LNKTYPE),
    "a device": ("dev", b"", tarfile.CHRTYPE),
    "a pipe": ("fifo", b"", tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_f12_hostile_members_are_refused_by_name(tmp_path, name):
    import io

    member, data, kind = HOSTILE[name]
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo(member)
        info.size, info.linkname = len(data), "/etc/passwd"
        if kind:
            info.type = kind
        archive.addfile(info, io.BytesIO(data))
    with pytest.raises(InputError, match=member):
        extract_folder(tmp_path / "a.tar", "", tmp_path / "deep" / "out", MEGABYTE)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["a.tar"]


def test_f12_a_bomb_and_doubled_names_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10_000 * 1000))
    with pytest.raises(InputError, match=r"bomb\.zip: .*'zeros'.*larger"):
        extract_member(tmp_path / "bomb.zip", "zeros", tmp_path / "out", MEGABYTE)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(10_000 * 1000)))
    with pytest.raises(InputError, match=r"bomb\.gz: .*'bomb'.*larger"):
        extract_member(tmp_path / "bomb.gz", "bomb", tmp_path / "out", MEGABYTE)
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
        archive.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", "2")
    with pytest.raises(InputError, match=r"twice\.zip: .*'a'"):
        extract_member(tmp_path / "twice.zip", "a", tmp_path / "out", MEGABYTE)
    assert not (tmp_path / "out").exists()


def test_f15_sides_of_unequal_length_are_refused_with_both_counts(tmp_path):
    for lang, lines in (("de", 1000), ("en", 900)):
        (tmp_path / f"a.{lang}").write_text("".join(f"{lang} {n}\n" for n in range(lines)), encoding="utf-8")
    files = {name: tmp_path / name for name in ("a.de", "a.en")}
    with pytest.raises(InputError, match=r"c: .*a\.de .*1,000, a\.en .*900"):
        list(READERS.get("moses")(files, "c", ["de", "en"]))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a\xff\nb\n", r"a\.txt:1: .*byte 0xff .* 2$"),
        (b"a\0b\n", r"a\.txt:1: .*NUL"),
        (b"\xed\xa0\x80\n", r"a\.txt:1: .*byte 0xed"),
        (b"", r"a\.txt: .*empty"),
        (b"\xef\xbb\xbfa\nb", ["a", "b"]),
        (b"a\r\nb\rc\n", ["a", "b\rc"]),
        ("a\u2028b\u0085c\nd\n".encode(), ["a\u2028b\u0085c", "d"]),
        (b"x" * (10 * MEGABYTE) + b"\ny\n", ["x" * (10 * MEGABYTE), "y"]),
    ],
    ids=["invalid UTF-8", "NUL", "surrogate", "empty", "byte order mark", "carriage returns", "U+2028 and U+0085", "a line of 10 MB"],
)
def test_f16_lines_are_read_by_one_policy(tmp_path, data, expected):
    (tmp_path / "a.txt").write_bytes(data)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            list(read_lines(tmp_path / "a.txt"))
    else:
        assert [text for _, text in read_lines(tmp_path / "a.txt")] == expected


def test_f17_packed_files_are_whole_or_refused(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert [text for _, text in read_lines(path)] == ["one", "two"]
    for data in (gzip.compress(b"one\n" * 9999)[:-20], gzip.compress(b"one\n") + b"garbage", b"plain text\n"):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"a\.gz.*damaged"):
            list(read_lines(path))


def test_f18_a_filter_worker_that_dies_fails_the_step(tmp_path):
    task = {"name": "c", "kind": "mono", "langs": ["en"], "steps": [{"length": {"min_words": 1}}]}
    rows = [pa.Table.from_pylist([{"id": str(n), "lang": "en", "text": "a b"}], schema=SCHEMAS["mono"]) for n in range(9)]
    with Workers(2, filter_work, task, "c") as workers:
        answers = workers.map(rows, [0, 1])
        next(answers)
        for worker in workers.workers:
            os.kill(worker.process.pid, signal.SIGKILL)
        with pytest.raises(ResourceError, match="status -9") as error:
            write_batches(tmp_path / "c.parquet", (table for table, _ in answers), "mono")
    assert error.value.exit_code == 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [1, 64 * 4], ids=["one byte", "one row"])
def test_f23_a_matrix_that_was_cut_is_refused(tmp_path, cut):
    from crosslign.vectors import open_vectors

    path = tmp_path / "a.npy"
    np.save(path, np.ones((10, 64), dtype=np.float32))
    os.truncate(path, path.stat().st_size - cut)
    with pytest.raises(InputError, match=r"a\.npy: .*readable"):
        open_vectors(path)


def test_f23_a_matrix_that_was_cut_and_mended_is_refused_by_its_texts(tmp_path):
    from crosslign.tasks.score import score_run

    np.save(tmp_path / "a.npy", np.ones((2, 4), dtype=np.float32))
    parts = {
        "texts": pa.table({"text_id": ["a", "b", "c"], "lang": ["en"] * 3, "text": ["x", "y", "z"]}),
        "items": pa.table({"item_id": ["a"], "text_id": ["a"]}),
        "gold": pa.table({"left": ["a"], "right": ["a"]}),
    }
    for name, table in parts.items():
        write_rows(tmp_path / f"{name}.parquet", table, name)
    sets = {"test": {name: tmp_path / f"{name}.parquet" for name in parts}}
    with pytest.raises(InputError, match=r"\b2 rows.*\b3 texts"):
        score_run("t", {"texts": {"test": "c"}}, {"test": tmp_path / "a.npy"}, sets, tmp_path / "out.json", {})


@pytest.mark.parametrize("name", ["model.bin", "pytorch_model.bin", "model.pkl", "model.pt"])
def test_f39_pickled_weights_are_never_loaded(tmp_path, tiny_encoder, name):
    import pickle

    from crosslign.encoders.model import Model

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/owned",)

    shutil.copytree(tiny_encoder / "main", tmp_path / "main")
    (tmp_path / "main" / "model.safetensors").unlink()
    (tmp_path / "main" / name).write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InputError):
        Model.load({"main": tmp_path / "main"})
    assert not (tmp_path / "owned").exists()
    np.save(tmp_path / "evil.npy", np.array([Evil()], dtype=object), allow_pickle=True)
    from crosslign.vectors import open_vectors

    with pytest.raises(InputError):
        open_vectors(tmp_path / "evil.npy")
    assert not (tmp_path / "owned").exists()


@pytest.fixture
def bringing_code(tmp_path, tiny_encoder):
    """A model's folder that says it comes with code, which leaves a mark where it runs."""
    folder = tmp_path / "main"
    shutil.copytree(tiny_encoder / "main", folder)
    own = {"AutoConfig": "brought.Brought", "AutoModel": "brought.Brought", "AutoTokenizer": ["brought.Brought", "brought.Brought"]}
    for name in ("config.json", "tokenizer_config.json"):
        content = json.loads((folder / name).read_text()) | {"auto_map": own, "model_type": "brought", "tokenizer_class": "Brought"}
        (folder / name).write_text(json.dumps(content))
    (folder / "brought.py").write_text(f"open({str(tmp_path / 'owned')!r}, 'w')\nclass Brought: pass\n")
    return folder


@pytest.mark.parametrize("program", ["encoder", "translator"])
def test_f39_code_that_a_model_brings_is_never_run_nor_asked_about(bringing_code, program):
    """Where it is not told, transformers asks on the terminal; here somebody would answer yes."""
    code = {
        "encoder": f"from crosslign.encoders.model import Member; Member.load({str(bringing_code)!r})",
        "translator": "from crosslign.views import TRANSLATORS, TranslatorSetting as Setting; "
        f"TRANSLATORS.get('transformers')(Setting('view', ['en'], ['de'], dict()), model={str(bringing_code)!r})._load('en', 'de')",
    }[program]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HF_HOME": str(bringing_code.parent / "home")}
    done = subprocess.run(
        [sys.executable, "-c", code], input="y\n" * 9, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert "InputError" in done.stderr, done.stderr[-2000:]
    assert "[y/N]" not in done.stdout + done.stderr
    assert not (bringing_code.parent / "owned").exists()


@pytest.mark.parametrize("named", ["weights.bin", "../main/model.safetensors", "/etc/passwd", 7])
def test_f39_an_index_of_weights_names_safetensors_beside_it_and_nothing_else(tmp_path, tiny_encoder, named):
    import torch

    from crosslign.encoders.model import Member

    index = shutil.copytree(tiny_encoder / "main", tmp_path / "main") / "model.safetensors.index.json"
    (tmp_path / "main" / "model.safetensors").unlink()
    torch.save({"weight": torch.ones(1)}, tmp_path / "main" / "weights.bin")
    index.write_text(json.dumps({"metadata": {}, "weight_map": {"weight": named}}))
    with pytest.raises(InputError, match=rf"index\.json: .*{re.escape(repr(named))}"):
        Member.load(tmp_path / "main")
    index.write_text("[]")
    with pytest.raises(InputError, match=r"index\.json: .*`weight_map`"):
        Member.load(tmp_path / "main")
