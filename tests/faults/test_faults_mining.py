"""The steps of a user's own mining, killed at their renames to final names and in a write: nothing is half, the next call ends the same."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from crosslign.files import write_rows
from crosslign.files.lineage import lineage_path

pytestmark = pytest.mark.workflow

SIDES = ("source", "target")
PAIRS = {"margin": "ratio", "retrieval": "intersect", "threshold": None, "output": "all", "encoders": ["me5_small"]}
SEARCH = {"k": 2, "backend": "exact", "search_options": {}}
JOB = """
import os, resource, signal, sys
from pathlib import Path
from crosslign.jobs.frame import execute
root, stage, at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
renames, real = 0, Path.replace
def replace(self, target):
    global renames
    renames += not any(part.endswith(".part") for part in Path(target).parts)
    if 0 < at == renames:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
Path.replace = replace
if at < 0:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (-at, -at))
matrices, texts = ([(side, str(root / f"{side}.{end}")) for side in ("source", "target")] for end in ("npy", "parquet"))
neighbours = ("neighbours", str(root / "neighbours.safetensors"))
parts = [str(root / f"{part}-of-2") for part in (1, 2)]
if stage in ("1-of-2", "2-of-2"):
    from crosslign.stages.mine_search import mine_search as work
    inputs, outputs, recipe = matrices, [("folder", str(root / stage))], {**SEARCH, "part": int(stage[0]), "parts": 2}
elif stage == "mine_join":
    from crosslign.stages.mine_join import mine_join as work
    inputs, outputs, recipe = [*matrices, ("derived", parts)], [neighbours], SEARCH
else:
    from crosslign.stages.mine_pairs import mine_pairs as work
    inputs, outputs, recipe = [neighbours, *texts], [(form, str(root / f"pairs.{form}")) for form in ("tsv", "parquet")], PAIRS
params = [("root", str(root)), ("recipe", recipe), ("work", str(root / "work" / stage))]
execute(work, inputs=inputs, outputs=outputs, params=params, threads=1, log=str(root / "logs" / f"{stage}.log"))
print("renames", renames)
""".replace("SEARCH", repr(SEARCH)).replace("PAIRS", repr(PAIRS))
FOLDERS = {part: [f"{part}/neighbours.safetensors"] for part in ("1-of-2", "2-of-2")}
OUTPUTS = {**FOLDERS, "mine_join": ["neighbours.safetensors"], "mine_pairs": ["pairs.tsv", "pairs.parquet"]}


def run(root, stage, at=0):
    return subprocess.run([sys.executable, "-c", JOB, str(root), stage, str(at)], capture_output=True, text=True, check=False, timeout=300)


def made(root, stage):
    return {name: (root / name).read_bytes() for name in OUTPUTS[stage] if (root / name).exists()}


@pytest.fixture(scope="module")
def mined(tmp_path_factory):
    """Both sides, and what an undisturbed run of both steps makes of them."""
    root, draw = tmp_path_factory.mktemp("mined"), np.random.default_rng(0)
    base = draw.normal(size=(300, 16)).astype(np.float32)
    for number, side in enumerate(SIDES):
        np.save(root / f"{side}.npy", base + 0.1 * number * draw.normal(size=base.shape).astype(np.float32))
        ids = [str(line) for line in range(1, 301)]
        write_rows(
            root / f"{side}.parquet", pa.table({"text_id": ids, "lang": ["en"] * 300, "text": [f"{side} {i} " * 9 for i in ids]}), "texts"
        )
    said = {stage: run(root, stage) for stage in OUTPUTS}
    assert [done.returncode for done in said.values()] == [0] * len(OUTPUTS), [done.stderr for done in said.values()]
    return root, {stage: int(done.stdout.split()[-1]) for stage, done in said.items()}


@pytest.mark.parametrize("stage", OUTPUTS)
def test_f01_a_step_of_mining_killed_at_any_rename_or_in_a_write_ends_in_the_same_bytes(mined, tmp_path, stage):
    whole, renames = mined
    own = {Path(name).parts[0] for name in OUTPUTS[stage]}
    assert renames[stage] == (1 if stage in FOLDERS else 2 * len(own)), "each artefact, and its lineage before it; a folder holds its own"
    for at in [*range(1, renames[stage] + 1), -1000]:
        root = tmp_path / str(at)
        left_out = [*own, *(f"{name}.lineage.json" for name in own), "work", "logs"]
        shutil.copytree(whole, root, copy_function=os.link, ignore=lambda at, _, out=left_out: out if Path(at) == whole else [])
        killed = run(root, stage, at)
        assert killed.returncode == -(signal.SIGKILL if at > 0 else signal.SIGXFSZ), killed.stderr
        assert all(content == (whole / name).read_bytes() for name, content in made(root, stage).items())
        assert all(lineage_path(root / name).exists() for name in own if (root / name).exists())
        done = run(root, stage)
        assert done.returncode == 0, done.stderr
        assert made(root, stage) == made(whole, stage)
        assert not [path.name for path in root.rglob("*.part")]
