"""Files of the network: downloaded once into a folder, whole and checked, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.progress import watched

TIMEOUT_S = 30


def user_cache() -> Path:
    """Return the folder of the user's cache that downloads lie in."""
    return Path(_pooch().os_cache("hpcgym"))


def downloaded(
    url: str,
    folder: Path,
    *,
    sha256: str | None = None,
    begin: bytes = b"",
    kind: str = "",
    progress: bool = True,
) -> Path:
    """Return a file of a folder, downloaded if it is not there, under the last name of its address.

    Parameters
    ----------
    url, folder : from where, and into which; the folder is made.
    sha256 : what it must be; a file that is there and is another one is downloaded again.
    begin, kind : the bytes that it must begin with, and what such a file is called.
    progress : show a bar on the terminal.

    Raises
    ------
    HpcgymError : why it cannot be downloaded, in a few words; nothing of it is kept then.
    """
    import requests

    pooch, file = _pooch(), url.rpartition("/")[2]
    pooch.get_logger().setLevel(logging.WARNING)
    try:
        with _bar(file, progress) as bar:
            found = pooch.retrieve(
                url,
                known_hash=f"sha256:{sha256}" if sha256 else None,
                fname=file,
                path=folder,
                downloader=_downloader(bar, begin, kind),
            )
    except requests.RequestException as error:
        raise HpcgymError(_reason(error)) from None
    except HpcgymError:
        raise
    except ValueError:
        raise HpcgymError("the file there has changed: its SHA-256 is not the known one") from None
    except OSError as error:
        raise HpcgymError(f"{folder} cannot be written: {error.strerror or error}") from None
    return Path(found)


def _pooch() -> Any:
    """Import pooch when it is needed, not when hpcgym is imported."""
    return import_module("pooch")


def _downloader(bar: Any, begin: bytes, kind: str) -> Any:
    """Return what pooch downloads with: the bytes as they are, if they begin as they must."""

    def keep_packed(response: Any, *args: Any, **kwargs: Any) -> None:
        # Some servers declare a .gz file as a compressed page, which would arrive unpacked.
        response.raw.headers.pop("Content-Encoding", None)

    get = _pooch().HTTPDownloader(
        progressbar=bar, timeout=TIMEOUT_S, hooks={"response": keep_packed}
    )

    def download(url: str, output: Any, pooch_object: Any) -> None:
        get(url, output, pooch_object)
        with open(output, "rb") as file:
            if file.read(len(begin)) != begin:
                raise HpcgymError(f"it gave something else than a {kind}")

    return download


@contextmanager
def _bar(title: str, shown: bool) -> Iterator[Any]:
    """Show a progress bar on the terminal's error stream, in the form that pooch wants."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    hidden = not (shown and watched())
    with Progress(*columns, console=Console(stderr=True), disable=hidden) as progress:
        task = progress.add_task(title, total=None)

        class Bar:
            total = 0

            def update(self, number: int) -> None:
                progress.update(task, total=self.total or None, advance=number)

            def reset(self) -> None:
                progress.reset(task)

            def close(self) -> None:
                pass

        yield Bar()


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
