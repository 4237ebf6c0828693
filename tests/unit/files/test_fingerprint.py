import subprocess
import sys

PROBE = """
import sys
sys.path.insert(0, sys.argv[1])
from crosslign.files import fingerprint as f
f.PACKAGE = "toy"
print(f.fingerprint("toy.stage"))
"""


def fingerprint_of(folder, body):
    package = folder / "toy"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("")
    (package / "maths.py").write_text(body)
    (package / "stage.py").write_text("from toy.maths import half\n")
    return subprocess.run([sys.executable, "-c", PROBE, str(folder)], check=True, capture_output=True, text=True).stdout


def test_comments_and_docstrings_do_not_count_and_an_imported_constant_does(tmp_path):
    plain = fingerprint_of(tmp_path, "def half(x):\n    return x / 2\n")
    noted = fingerprint_of(tmp_path, "# why\ndef half(x):\n    '''Halve.'''\n    return x / 2  # so\n")
    other = fingerprint_of(tmp_path, "def half(x):\n    return x / 3\n")
    assert plain == noted
    assert plain != other


def test_nothing_is_imported_to_be_read(tmp_path):
    (tmp_path / "toy" / "loud").mkdir(parents=True)
    (tmp_path / "toy" / "loud" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "toy" / "loud" / "inner.py").write_text("ONE = 1\n")
    one = fingerprint_of(tmp_path, "from toy.loud.inner import ONE\n")
    (tmp_path / "toy" / "loud" / "inner.py").write_text("ONE = 2\n")
    assert one != fingerprint_of(tmp_path, "from toy.loud.inner import ONE\n")
