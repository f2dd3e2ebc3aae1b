"""Files of the network: downloaded once into a folder, whole and checked, or not at all."""

from __future__ import annotations

from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.files import sha256_of
from hpcgym.files.writing import whole_file
from hpcgym.progress import working

TIMEOUT_S = 30
_PIECE = 1 << 16  # bytes that are written at once


def user_cache() -> Path:
    """Return the folder of the user's cache that downloads lie in."""
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("hpcgym"))


def downloaded(
    url: str,
    folder: Path,
    *,
    sha256: str | None = None,
    begin: bytes = b"",
    kind: str = "",
) -> Path:
    """Return a file of a folder, downloaded if it is not there, under the last name of its address.

    Parameters
    ----------
    url, folder : from where, and into which; the folder is made.
    sha256 : what it must be; a file that is there and is another one is downloaded again.
    begin, kind : the bytes that it must begin with, and what such a file is called.

    Raises
    ------
    HpcgymError : why it cannot be downloaded, in a few words; nothing of it is kept then.
    """
    path = folder / url.rpartition("/")[2]
    if path.exists() and sha256 in (None, sha256_of(path)):
        return path
    with whole_file(path, folders=True) as part, working(f"downloading {path.name}"):
        _download(url, part)
        with part.open("rb") as file:
            if file.read(len(begin)) != begin:
                raise HpcgymError(f"it gave something else than a {kind}")
        if sha256 not in (None, sha256_of(part)):
            raise HpcgymError("the file there has changed: its SHA-256 is not the known one")
    return path


def _download(url: str, path: Path) -> None:
    """Write what there is at an address into a file."""
    import requests

    try:
        with requests.get(url, stream=True, timeout=TIMEOUT_S) as answer, path.open("wb") as file:
            answer.raise_for_status()
            # some servers declare a .gz file as a compressed page, which would arrive unpacked
            answer.raw.headers.pop("Content-Encoding", None)
            for piece in answer.iter_content(_PIECE):
                file.write(piece)
    except requests.RequestException as error:
        raise HpcgymError(_reason(error)) from None


def _reason(error: Exception) -> str:
    """Say in a few words why a download failed."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server says {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT_S} s"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return str(error).splitlines()[0]
