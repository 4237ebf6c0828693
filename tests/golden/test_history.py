"""Kept results cannot simply be written anew: no file has other results under its old number than an earlier commit has."""

import json
import subprocess

import pytest
from golden import same
from made_inputs import ROOT

PLACE = "tests/golden/kept"


def git(folder, *arguments):
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def bases(folder):
    """Return the commits that a checkout is held against: where it left origin/main, the last tag, and the commit before this one."""
    head = git(folder, "rev-parse", "HEAD")
    named = [
        git(folder, "merge-base", "HEAD", "origin/main"),
        git(folder, "rev-list", "-n", "1", git(folder, "describe", "--tags", "--abbrev=0")),
    ]
    found = [commit for commit in [*named, git(folder, "rev-parse", "HEAD^")] if commit and commit != head]
    return [*dict.fromkeys(found), *([head] if head and git(folder, "status", "--porcelain", PLACE) else [])]


def rewritten(folder, base):
    """Return the results that an earlier commit keeps under the same number, with the same company, and that are others now."""
    wrong = []
    for path in git(folder, "ls-tree", "-r", "--name-only", base, PLACE).splitlines():
        now = folder / path
        if not path.endswith(".json") or not now.exists():
            continue
        old, new = json.loads(git(folder, "show", f"{base}:{path}")), json.loads(now.read_text(encoding="utf-8"))
        shared = old.keys() & new.keys()
        wrong += [
            f"{path}: {name}"
            for name in sorted(shared)
            if old[name]["with"] == new[name]["with"] and not same(old[name]["made"], new[name]["made"])
        ]
    return wrong


def test_no_kept_result_is_written_anew_under_its_old_number():
    if not (ROOT / ".git").exists():
        pytest.skip("no .git here: nothing to hold the kept results against")
    commits = bases(ROOT)
    if not commits:
        pytest.skip("no earlier commit here (a shallow clone): fetch origin/main, or clone with more depth")
    for commit in commits:
        assert not rewritten(ROOT, commit), (
            f"raise the version instead of writing other results under the old one (held against {commit[:12]})"
        )


def test_a_rewritten_result_is_found_and_a_raised_version_is_none(tmp_path):
    file = tmp_path / PLACE / "tasks.scorers" / "sts@v1.json"
    file.parent.mkdir(parents=True)

    def keep(made, other="a@1", path=file):
        path.write_text(json.dumps({"x": {"with": other, "made": made}}))

    keep([1.0])
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert bases(tmp_path) == []
    keep([2.0])
    (head,) = bases(tmp_path)
    assert rewritten(tmp_path, head) == [f"{PLACE}/tasks.scorers/sts@v1.json: x"]
    subprocess.run(["git", *who, "commit", "-q", "-a", "-m", "two"], cwd=tmp_path, check=True)
    assert rewritten(tmp_path, bases(tmp_path)[0])  # the commit before this one
    keep([2.0], other="a@2")
    assert rewritten(tmp_path, head) == []
    keep([1.000001])
    assert rewritten(tmp_path, head) == []
    file.unlink()
    keep([2.0], path=file.with_name("sts@v2.json"))
    assert rewritten(tmp_path, head) == []
