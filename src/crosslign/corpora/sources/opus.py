"""Any corpus, version and pair of OPUS by name: the catalogue of opustools says what there is, the bytes come as from any server."""

from __future__ import annotations

import functools
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosslign.config.catalog import describe
from crosslign.corpora import SOURCES
from crosslign.corpora.sources import url
from crosslign.corpora.sources._client import BROKEN, BUSY, check_status, client, placed
from crosslign.corpora.sources._network import require_network
from crosslign.entries.catalog import Source
from crosslign.entries.resolved import AskedFile
from crosslign.errors import InputError, NetworkError
from crosslign.registry import nearest

API = "https://opus.nlpl.eu/opusapi"
FORMS = (
    (re.compile(r"([A-Za-z_]{2,12})-([A-Za-z_]{2,12})\.txt\.zip"), "moses"),
    (re.compile(r"([A-Za-z_]{2,12})-([A-Za-z_]{2,12})\.tmx\.gz"), "tmx"),
    (re.compile(r"([A-Za-z_]{2,12})()\.txt\.gz"), "mono"),
)
"""How OPUS calls the files of each form: two languages as Moses lines or TMX, one language as text."""

Wanted = Mapping[str, str]
"""corpus, version, source, target and preprocessing, as OPUS names them; the target of monolingual text is empty."""


def wanted(source: Source, file: AskedFile) -> dict[str, str]:
    """Return what to ask OPUS for.

    Raises:
        InputError: the file's name is none that OPUS gives.
    """
    for pattern, form in FORMS:
        if found := pattern.fullmatch(str(file["name"])):
            first, second = sorted(found.groups()) if found[2] else found.groups()
            return {"corpus": source["opus"], "version": source["version"], "source": first, "target": second, "preprocessing": form}
    raise InputError(
        f"{file['name']!r} is not a file of OPUS", where=f"opus:{source['opus']}", why="allowed: en-fr.txt.zip, en-fr.tmx.gz, fr.txt.gz"
    )


@functools.cache
def _catalogue() -> tuple[Any, tempfile.TemporaryDirectory[str]]:
    """Return the catalogue, and the folder that it lies in unpacked (130 MB) until the process ends."""
    from opustools import OpusGet

    folder = tempfile.TemporaryDirectory(prefix="crosslign-")
    return OpusGet(local_db=True, database=str(Path(folder.name, "opus.db")), download_dir=folder.name).dbo, folder


def catalogued(query: Wanted) -> list[dict[str, Any]]:
    """Return the resources of the catalogue that opustools carries which fit `query`; keys left out fit anything."""
    catalogue, _ = _catalogue()
    found: list[dict[str, Any]] = catalogue.run_default_query(catalogue.clean_up_parameters(dict(query)))
    return found


def asked(query: Wanted, api: str) -> list[dict[str, Any]]:
    """Return what an OPUS API says that it has.

    Raises:
        TransientError: the server is busy or cannot be reached.
        NetworkError: its answer is none of the API.
    """
    try:
        with client(api) as web:
            response = web.get(placed(api), params=dict(query))
        if response.status_code in BUSY | BROKEN:
            check_status(response, api, "the list of OPUS")
        return [dict(resource) for resource in response.json()["corpora"]]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise NetworkError("the answer of OPUS is not in the format of its API", where=api, why=f"status {response.status_code}") from error


def _latest(query: Wanted) -> dict[str, str]:
    """Return the query with `latest` in place of a version of that name, as the catalogue wants it."""
    rest = {key: value for key, value in query.items() if key != "version"}
    return {**rest, "latest": "True"} if query["version"] == "latest" else dict(query)


def _known(query: Wanted) -> list[dict[str, Any]]:
    """Return what the catalogue has for a query; opustools asks for codes in alphabetical order, which a few files do not bear."""
    if found := catalogued(_latest(query)):
        return found
    wider = _latest({key: query[key] for key in ("corpus", "version", "preprocessing")})
    return [row for row in catalogued(wider) if {row["source"], row["target"]} == {query["source"], query["target"]}]


def _absent(query: Wanted, where: str) -> InputError:
    """Return the error for what OPUS has not: which versions, pairs or corpora it has instead."""
    pair = {key: query[key] for key in ("corpus", "source", "target", "preprocessing")}
    if versions := sorted({str(row["version"]) for row in catalogued(pair)}):
        return InputError("OPUS has no such version", where=where, why=nearest(query["version"], versions))
    if rows := catalogued({"corpus": query["corpus"], "preprocessing": query["preprocessing"]}):
        pairs = sorted({f"{row['source']}-{row['target']}" for row in rows if query["source"] in (row["source"], row["target"])})
        return InputError("OPUS has no such pair of languages", where=where, why=nearest(f"{query['source']}-{query['target']}", pairs))
    return InputError("OPUS has no such corpus", where=where, why="names are case-sensitive: ParaCrawl, CCMatrix, News-Commentary")


def find(source: Source, file: AskedFile) -> str:
    """Return the address of one file of OPUS.

    The catalogue that opustools carries is looked up first; what it does not know (a newer version) is asked of the API.
    `api` in the source asks that one alone.

    Raises:
        InputError: there is no such corpus, version or pair; those that there are, are named.
        TransientError, NetworkError: the API could not be asked.
    """
    query = wanted(source, file)
    found = [] if "api" in source else _known(query)
    if not found:
        found = asked(query, str(source.get("api", API)))
    where = describe(source, file)
    exact = [row for row in found if row.get("preprocessing") == query["preprocessing"]]
    if not exact:
        raise _absent(query, where)
    address = str(exact[0].get("url", ""))
    if not address.startswith(("https://", "http://")):
        raise NetworkError("OPUS returned no address", where=where, why=f"found {address!r}")
    return address


@SOURCES.register(version=1)
def fetch(source: Source, file: AskedFile, dest: Path) -> str:
    """Download one file of a corpus, version and pair of OPUS, resumed as any other; errors are those of `find` and of the source `url`."""
    require_network(file["name"], describe(source, file))
    folder, _, name = find(source, file).rpartition("/")
    return url.fetch({**source, "url": folder}, {**file, "path": name}, dest)
