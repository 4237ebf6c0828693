"""The configuration of a small project with an entry of every kind; nothing of it is ever built."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
KIND = Path(__file__).parent / "every_kind"
CONFIG, ENCODERS, CORPORA, TASKS = (f"config/{name}.yaml" for name in ("config", "encoders", "corpora", "tasks"))
PAPER, OTHER, SCALE = "config/papers/one.yaml", "config/papers/two.yaml", "config/scales/mini.yaml"
FILES = {str(path.relative_to(KIND)): path.read_text(encoding="utf-8") for path in KIND.rglob("*.yaml")}


def write_project(folder):
    """Write the files to a folder, beside the schemas and texts of this project."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "workflow").symlink_to(ROOT / "workflow")
    return folder
