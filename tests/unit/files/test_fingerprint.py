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


def test_what_an_error_says_does_not_count_and_when_it_comes_does(tmp_path):
    body = "from crosslign.errors import InputError\ndef half(x):\n    if x < {0}:\n        raise {1}({2})\n    return x / 2\n"
    first = fingerprint_of(tmp_path, body.format(0, "InputError", "'too small', where=str(x)"))
    assert first == fingerprint_of(tmp_path, body.format(0, "InputError", "f'{x} is below zero', do='Give more'"))
    assert first != fingerprint_of(tmp_path, body.format(1, "InputError", "'too small', where=str(x)"))
    assert first != fingerprint_of(tmp_path, body.format(0, "NetworkError", "'too small', where=str(x)"))
    said, other = (fingerprint_of(tmp_path, body.format(0, "Found", f"'{name}'")) for name in ("a", "b"))
    assert said != other  # an error of another kind may carry what is computed with


def test_nothing_is_imported_to_be_read(tmp_path):
    (tmp_path / "toy" / "loud").mkdir(parents=True)
    (tmp_path / "toy" / "loud" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "toy" / "loud" / "inner.py").write_text("ONE = 1\n")
    one = fingerprint_of(tmp_path, "from toy.loud.inner import ONE\n")
    (tmp_path / "toy" / "loud" / "inner.py").write_text("ONE = 2\n")
    assert one != fingerprint_of(tmp_path, "from toy.loud.inner import ONE\n")
