"""What nobody vouches for never runs: the source is read for every way to run text, and the readers are fed noise."""

from __future__ import annotations

import ast
import gzip
import struct
import sys
import tracemalloc
from functools import cache, partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from e5s1_file import build_file
from hypothesis import given, settings
from hypothesis import strategies as st
from project_copy import ROOT

from crosslign.corpora import EVALUATIONS, READERS, Given
from crosslign.encoders.formats import FORMATS
from crosslign.errors import InputError

SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "workflow").rglob("*.py"))]
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
FORBIDDEN_CALLS |= {
    "torch.save",
    "numpy.load_pickle",
    "pandas.read_pickle",
}
WEIGHTS_READER = "src/crosslign/encoders/formats/_torch_file.py"
"""The one place that reads what torch saved: by its weights-only reader, when an encoder is prepared."""
YAML_READER = "src/crosslign/config/yaml_files.py"
"""The one place that PyYAML is used in: for events of its parser, of which none makes an object."""
OWN_CLASSES = {"BertTokenizer.from_pretrained"}
"""Classes that are named here, not by the files that are read: no code of a model can come in."""
FORBIDDEN_MODULES = {"pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "commands", "xmlrpc"}


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def problems(path):
    """Yield what in a source file could run text that somebody else wrote."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            known = {"yaml"} if path.relative_to(ROOT).as_posix() == YAML_READER else set()
            yield from (f"{where}: imports {name}" for name in names if name.split(".")[0] in FORBIDDEN_MODULES - known)
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            options = {word.arg: word.value for word in node.keywords}
            if name in FORBIDDEN_CALLS or (
                name == "YAML" and ast.unparse(options.get("typ", ast.Constant("rt"))) not in ("'safe'", "'rt'")
            ):
                yield f"{where}: calls {name}"
            if name.startswith("yaml.") and name != "yaml.parse":
                yield f"{where}: calls {name}, which may make objects"
            if "shell" in options or (
                name.startswith("subprocess.") and node.args and isinstance(node.args[0], ast.JoinedStr | ast.Constant)
            ):
                yield f"{where}: a command as text"
            if name in ("np.load", "numpy.load") and ast.unparse(options.get("allow_pickle", ast.Constant(False))) != "False":
                yield f"{where}: np.load with pickles"
            if name == "torch.load":
                restricted = ast.unparse(options.get("weights_only", ast.Constant(False))) == "True"
                if not restricted or path.relative_to(ROOT).as_posix() != WEIGHTS_READER:
                    yield f"{where}: torch.load beside the weights-only reader"
            asks = isinstance(node.func, ast.Attribute) and node.func.attr == "from_pretrained" and name not in OWN_CLASSES
            if (asks or "trust_remote_code" in options) and ast.unparse(options.get("trust_remote_code", ast.Constant(None))) != "False":
                yield f"{where}: code of a model may run, or transformers asks whether it may"
            if name.endswith(("extractall", ".extract")) and "tar" in name:
                yield f"{where}: an archive unpacked without a look"


def test_no_source_runs_text():
    assert [problem for path in SOURCES for problem in problems(path)] == []
    assert len(SOURCES) > 200


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "eval(x)",
        "import subprocess\nsubprocess.run('ls')",
        "f(shell=True)",
        "np.load(x, allow_pickle=True)",
        "torch.load(x)",
        "torch.load(x, weights_only=False)",
        "torch.load(x, weights_only=True)",
        "AutoModel.from_pretrained(x)",
        "(AutoModel if a else AutoTokenizer).from_pretrained(x, trust_remote_code=None)",
    ],
)
def test_the_scan_finds_what_it_looks_for(tmp_path, monkeypatch, text):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "a.py").write_text(text)
    assert list(problems(tmp_path / "a.py"))


def test_no_rule_has_a_shell_line():
    rules = [ROOT / "Snakefile", *(ROOT / "workflow").rglob("*.smk")]
    assert [str(path) for path in rules if "shell:" in path.read_text(encoding="utf-8")] == []


PIECES = {
    "tmx": b"<?xml version='1.0'?>|<tmx version='1.4'>|<body>|<tu>|<tuv xml:lang='en'>|<seg>|a|</seg>|</tuv>|<tuv xml:lang='de'>|</tu>"
    b"|</body>|</tmx>|<!DOCTYPE x [<!ENTITY a 'b'>]>|&a;|&#0;|<seg/>".split(b"|"),
    "squad": b'{"data": [|{"paragraphs": [|{"context": "a b",|"qas": [|{"id": 1, "question": "q",|"answers": [|]}|{"answer_start": -5}'
    b'|{"answer_start": 1e400}|null|]|}|,|NaN|"\\ud800"'.split(b"|"),
    "dictionary": [b"a b\n", b"a\tb\n", b"a\n", b" \n", b"\t\t\n", b"\xff", b"\0", b"\xef\xbb\xbf", b"a b c\r\n"],
    "moses": [b"a\n", b"\n", b"\r\n", b"\xff\n", b"\0", "\u2028".encode(), b"\xef\xbb\xbf"],
}
BUCC = [b"de-1\ta\n", b"en-1\tb\n", b"de-1\ten-1\n", b"\t\n", b"x\n", b"\xff", b"\0", b"de-1\t\n"]
STS = [
    b"id\tscore\tfirst\tsecond\n",
    b"s1\t5\ta\tb\n",
    b"s1\t-1\ta\tb\n",
    b"s1\tnan\ta\tb\n",
    b"s2\tx\ta\tb\n",
    b"s3\t1e999\ta\tb\n",
    b"\t\t\t\n",
    b"s1\t1\n",
    b"\xff",
]
BOUNDED = settings(max_examples=60)


def noise(pieces):
    return st.lists(st.sampled_from(pieces) | st.binary(max_size=12), max_size=25).map(b"".join)


MOST_BYTES = 64 << 20
"""What Python may hold at once for a file of some hundred bytes."""


def read_or_refuse(read):
    """Read to the end; only the documented error may come, in one line, and the memory stays within its bound."""
    message = ""
    tracemalloc.start()
    try:
        read()
    except InputError as error:
        message = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert "\n" not in message
    assert peak < MOST_BYTES


@pytest.mark.parametrize("reader", PIECES)
@BOUNDED
@given(data=st.data())
def test_f16_noise_never_crashes_a_reader(tmp_path, reader, data):
    names = {"moses": ("a.en", "a.de"), "dictionary": ("en-de.txt",), "squad": ("a.json",), "tmx": ("a.tmx",)}[reader]
    for name in names:
        (tmp_path / name).write_bytes(data.draw(noise(PIECES[reader])))
    files = {name: tmp_path / name for name in names}
    langs = ["en"] if reader == "squad" else ["en", "de"]
    read_or_refuse(lambda: list(READERS.get(reader)(files, "demo", langs)))


@BOUNDED
@given(data=st.data())
def test_f16_noise_never_crashes_bucc_and_sts(tmp_path, data):
    for name in ("de-en.training.de", "de-en.training.en", "de-en.training.gold"):
        (tmp_path / name).write_bytes(data.draw(noise(BUCC)))
    files = {path.name: path for path in sorted(tmp_path.glob("de-en.*"))}
    read_or_refuse(lambda: EVALUATIONS.get("bucc")(Given(files, {}, "demo", ["de", "en"], None, 0), split="training"))
    for name in ("sts_en.tsv", "sts_de.tsv"):
        (tmp_path / name).write_bytes(data.draw(noise(STS)))
    files = {path.name: path for path in sorted(tmp_path.glob("sts_*"))}
    read_or_refuse(lambda: EVALUATIONS.get("sts_tsv")(Given(files, {}, "demo", ["en", "de"], None, 0), pairs=["en-en", "en-de"]))


PAIRS = [b"a b\tc d\n", b"a\n", b"\t\t\n", b"\n", b"\xff\tb\n", b"\0\tb\r\n", "a\tb\u2028\n".encode(), b"\xef\xbb\xbf"]
GRADES = [b"5\n", b"0.25\n", b"\n", b"-1\n", b"nan\n", b"1e999\n", b"x\n", b"\xff\n", b"\0", "\u0663\n".encode()]
JSON_ROWS = [
    b'{"sentence1": "a", "sentence2": "b", "score": 3, "lang": "en-de"}\n',
    b'{"sentence1": "a", "sentence2": "b", "score": "4.5", "lang": "en"}\n',
    b'{"sentence1": "", "sentence2": null, "score": 1}\n',
    b'{"sentence1": {"a": 1}, "sentence2": [], "score": {}, "lang": []}\n',
    b'{"score": 1e999, "lang": "\\ud800"}\n',
    b'{"score": NaN}\n',
    b"[1, 2]\n",
    b"null\n",
    b'"text"\n',
    b"{\n",
    b"\xff\n",
    b"\n",
]


@BOUNDED
@given(data=st.data())
def test_f16_noise_never_crashes_the_official_readers_of_similarity(tmp_path, data):
    senteval = {f"STS15-en-test/STS.{half}.{subset}.txt": half for half in ("input", "gs") for subset in ("headlines", "images")}
    track = {f"STS.{half}.track{track}.txt": half for half in ("input", "gs") for track in ("5.en-en", "6.tr-en", "4b.es-en")}
    for reader, names, options in (("senteval_sts", senteval, {"year": 15}), ("sts17", track, {})):
        files = {}
        for name, half in names.items():
            files[name] = tmp_path / reader / name
            files[name].parent.mkdir(parents=True, exist_ok=True)
            files[name].write_bytes(data.draw(noise(PAIRS if half == "input" else GRADES)))
        read = partial(EVALUATIONS.get(reader), Given(files, {}, "demo", [], None, 0), **options)
        read_or_refuse(read)
    for name, pieces in (("sts17.jsonl", JSON_ROWS), ("en-de.parquet", [b"PAR1", b"\x15\x04", b"\0\0\0\x80"])):
        (tmp_path / name).write_bytes(data.draw(noise(pieces)))
        files = {name: tmp_path / name}
        read_or_refuse(lambda files=files: EVALUATIONS.get("mteb_sts")(Given(files, {}, "demo", [], None, 0)))


@BOUNDED
@given(data=st.data())
def test_f16_a_changed_parquet_file_is_read_or_refused(tmp_path, data):
    pq.write_table(pa.table({"sentence1": ["a b", "c"], "sentence2": ["x", "y"], "score": [1.0, 2.0]}), tmp_path / "en-de.parquet")
    pq.write_table(pa.table({"id": ["1"], "text": ["A sentence. Another one."]}), tmp_path / "articles.parquet")
    for path in sorted(tmp_path.glob("*.parquet")):  # the folder's own order differs, and with it what is drawn
        changed = bytearray(path.read_bytes())
        for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=3)):
            changed[place] = data.draw(st.integers(0, 255))
        path.write_bytes(changed[: data.draw(st.integers(len(changed) // 2, len(changed)))] if data.draw(st.booleans()) else changed)
    files = {name: tmp_path / name for name in ("en-de.parquet", "articles.parquet")}
    read_or_refuse(lambda: EVALUATIONS.get("mteb_sts")(Given({"en-de.parquet": files["en-de.parquet"]}, {}, "demo", [], None, 0)))
    read_or_refuse(lambda: list(READERS.get("wikipedia_parquet")({"a": files["articles.parquet"]}, "demo", ["en"])))


def test_text_in_parquet_that_is_no_utf8_is_refused_with_its_file(tmp_path):
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    pq.write_table(pa.table({"sentence1": bad, "sentence2": ["x"], "score": [1.0]}), tmp_path / "en-de.parquet")
    pq.write_table(pa.table({"id": ["1"], "text": bad}), tmp_path / "articles.parquet")
    with pytest.raises(InputError, match=r"en-de\.parquet"):
        EVALUATIONS.get("mteb_sts")(Given({"en-de.parquet": tmp_path / "en-de.parquet"}, {}, "demo", [], None, 0))
    with pytest.raises(InputError, match=r"articles\.parquet"):
        list(READERS.get("wikipedia_parquet")({"a": tmp_path / "articles.parquet"}, "demo", ["en"]))


def test_similarity_in_parquet_that_is_no_text_is_refused_with_its_row(tmp_path):
    pq.write_table(pa.table({"sentence1": ["a", "b"], "sentence2": [b"x", b"y"], "score": [1.0, 2.0]}), tmp_path / "en-de.parquet")
    with pytest.raises(InputError, match="sentence2") as refused:
        EVALUATIONS.get("mteb_sts")(Given({"en-de.parquet": tmp_path / "en-de.parquet"}, {}, "demo", [], None, 0))
    assert "en-de.parquet:1" in str(refused.value)


def test_whole_pieces_of_similarity_are_read(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"".join(JSON_ROWS[:2]))
    found = EVALUATIONS.get("mteb_sts")(Given({"a.jsonl": tmp_path / "a.jsonl"}, {}, "demo", [], None, 0))
    assert sorted({row["subset"] for row in found.items.to_pylist()}) == ["en", "en-de"]


WHOLE = build_file()[0]


@pytest.fixture(scope="module")
def e5s1(tmp_path_factory):
    """Return the reader, with all that a first call imports: transformers alone is beyond `MOST_BYTES`."""
    folder, reader = tmp_path_factory.mktemp("whole"), FORMATS.get("e5s1")
    (folder / "a.bin").write_bytes(WHOLE)
    (folder / "out").mkdir()
    reader(folder / "a.bin", folder / "out")
    return reader


@BOUNDED
@given(data=st.data())
def test_f16_a_changed_model_file_is_read_or_refused(tmp_path, e5s1, data):
    changed = bytearray(WHOLE[: data.draw(st.integers(0, len(WHOLE)))] if data.draw(st.booleans()) else WHOLE)
    for _ in range(data.draw(st.integers(1, 3))):
        if len(changed) > 8:
            place = data.draw(st.integers(0, min(len(changed), 3000) - 8))
            struct.pack_into("<Q", changed, place, data.draw(st.sampled_from([0, 1, 2**31 - 1, 2**32, 2**63, 2**64 - 1])))
    (tmp_path / "a.bin").write_bytes(changed)
    (tmp_path / "out").mkdir(exist_ok=True)
    read_or_refuse(lambda: e5s1(tmp_path / "a.bin", tmp_path / "out"))


LAUGHS = "<?xml version='1.0'?><!DOCTYPE tmx [<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10))
OUTER = "<!DOCTYPE tmx [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"
SEGMENT = b"<tmx><body><tu><tuv xml:lang='en'><seg>"


def bomb(before=b""):
    """Return half a megabyte of gzip that unpacks to 512 MB without a line's end."""
    return gzip.compress(before) + eighth() * 8


@cache
def eighth():
    return gzip.compress(b"a" * (1 << 26))


def lying(place, form, value):
    """Return a small model file one field of whose header says something else."""
    changed = bytearray(build_file()[0])
    struct.pack_into(form, changed, place, value)
    return bytes(changed)


GREEDY = {
    "a billion laughs": (
        "tmx",
        {"a.tmx": (LAUGHS + "]><tmx><body><tu><tuv xml:lang='en'><seg>&a9;</seg></tuv></tu></body></tmx>").encode},
        "declares an entity",
    ),
    "an outer entity": (
        "tmx",
        {"a.tmx": (OUTER + "<tmx><body><tu><tuv xml:lang='en'><seg>&x;</seg></tuv></tu></body></tmx>").encode},
        "declares an entity",
    ),
    "one segment": ("tmx", {"a.tmx.gz": lambda: bomb(SEGMENT)}, "a <tu> has more than 67,108,864 bytes"),
    "one tag": ("tmx", {"a.tmx.gz": lambda: bomb(b"<tmx><")}, "a <tu> has more than 67,108,864 bytes"),
    "deep XML": ("tmx", {"a.tmx": lambda: b"<tmx>" * 1_000_000}, "elements are nested more than 100 levels deep"),
    "deep JSON": ("squad", {"a.json": lambda: b"[" * 1_000_000}, "not JSON"),
    "one value": ("squad", {"a.json.gz": lambda: bomb(b'"')}, "the JSON file has more than 268,435,456 bytes"),
    "one line of a bitext": ("moses", {"a.en.gz": bomb, "a.de.gz": bomb}, "a line has more than 67,108,864 bytes"),
    "one line of a dictionary": ("dictionary", {"en-de.txt.gz": bomb}, "a line has more than 67,108,864 bytes"),
    "one line of BUCC": (
        "bucc",
        {f"de-en.training.{part}": bomb for part in ("de", "en", "gold")},
        "a line has more than 67,108,864 bytes",
    ),
    "one line of similarity": ("sts_tsv", {"sts_en.tsv": bomb, "sts_de.tsv": bomb}, "a line has more than 67,108,864 bytes"),
    "a model as wide as its file": ("e5s1", {"a.bin": lambda: lying(8, "<i", 1 << 12)}, "has the wrong shape"),
    "a model of 2^31 words": ("e5s1", {"a.bin": lambda: lying(24, "<i", 2**31 - 1)}, "impossible shape"),
    "a model of 2^31 pieces": ("e5s1", {"a.bin": lambda: lying(44, "<i", 2**31 - 1)}, "impossible number of pieces"),
}
"""Implementation, content of each file by its name, and what the refusal says."""
BOUND = """
import resource
now = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (400 << 20),) * 2)
"""
"""400 MB beside the interpreter and its modules: what Arrow, torch and expat take counts too."""
READ = f"""
import sys
from pathlib import Path
from crosslign.corpora import EVALUATIONS, READERS, Given
from crosslign.encoders.formats import FORMATS
from crosslign.errors import InputError
name, files = sys.argv[1], {{Path(path).name.removesuffix('.packed.gz'): Path(path) for path in sys.argv[2:]}}
point = next(point for point in (READERS, EVALUATIONS, FORMATS) if name in point.names())
read = point.get(name)
calls = {{
    'bucc': lambda: read(Given(files, {{}}, 'demo', ['de', 'en'], None, 0), split='training'),
    'sts_tsv': lambda: read(Given(files, {{}}, 'demo', ['en', 'de'], None, 0), pairs=['en-en', 'en-de']),
    'e5s1': lambda: read(files['a.bin'], files['a.bin'].parent),
    'squad': lambda: list(read(files, 'demo', ['en'])),
}}
call = calls.get(name, lambda: list(read(files, 'demo', ['en', 'de'])))
{BOUND}
try:
    print(len(call()))
except InputError as error:
    print('refused:', error)
"""


ALIKE = ("one line of a dictionary", "one line of BUCC", "one line of similarity")
"""Read as the lines of a bitext are."""


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.long] if case in ALIKE else []) for case in GREEDY])
def test_f12_input_that_grows_without_end_is_refused_within_a_bound_of_memory_and_time(forks, tmp_path, case):
    name, files, said = GREEDY[case]
    paths = []
    for file, content in files.items():
        data = content()
        paths.append(tmp_path / (file if data[:2] != b"\x1f\x8b" or file.endswith(".gz") else file + ".packed.gz"))
        paths[-1].write_bytes(data)
    done = forks.run(READ, name, *paths, seconds=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("refused:"), done.stdout[:300]
    assert said in done.stdout
    assert "root:" not in done.stdout


def test_f12_the_bound_is_real(forks):
    """What a reader may take without being noticed: less than the bound, and no more."""
    assert forks.run(f"{BOUND}held = bytearray(300 << 20)").returncode == 0
    assert "MemoryError" in forks.run(f"{BOUND}held = bytearray(500 << 20)").stderr
