"""Real traces of the Parallel Workloads Archive: what they are, where they lie, how to get them.

Nothing of the archive comes with this package. A trace is looked for in the folders that the
environment variable ``HPCGYM_DATA`` names, then in the user's cache, where :func:`fetch` puts it.
Other SWF files in these folders can be named, too: see :func:`own_traces`.
Source of names and figures: https://www.cs.huji.ac.il/labs/parallel/workload/logs.html
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hpcgym.errors import HpcgymError, WorkloadError, unknown
from hpcgym.files import is_there
from hpcgym.files.fetching import downloaded, user_cache
from hpcgym.workload.io.files import sha256_of, stem

SITE = "https://www.cs.huji.ac.il/labs/parallel/workload"
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Trace:
    """One log of the archive.

    Attributes
    ----------
    name : what it is called here and in papers.
    file : name of the archive's file, in the version that papers use.
    folder : where the archive's site keeps it.
    system : the machine.
    processors : of the machine, as the archive tells; the file's header is what counts.
    jobs : job lines of the file, as the archive tells.
    period : first and last month of the log.
    sha256 : checksum of the archive's file, None where it is not known.
    studied_processors : of the machine that published studies simulate, None: as the header tells.
    studied_file : name of the edition that published studies have, None: the archive's file.
    note : the studied machine and edition in words, for comparisons with published results.
    """

    name: str
    file: str
    folder: str
    system: str
    processors: int
    jobs: int
    period: str
    sha256: str | None = None
    studied_processors: int | None = None
    studied_file: str | None = None
    note: str = ""

    @property
    def url(self) -> str:
        """Address of the file."""
        return f"{SITE}/{self.folder}/{self.file}"

    @property
    def page(self) -> str:
        """Address of the archive's page about the log, with its terms and known flaws."""
        return f"{SITE}/{self.folder}/index.html"

    def is_archive_file(self, path: Path) -> bool:
        """Tell whether a file bears the name of the archive's file, packed or not."""
        return stem(path) == stem(Path(self.file))

    def is_studied_file(self, path: Path) -> bool:
        """Tell whether a file bears the name of the edition that published studies have."""
        return stem(path) == stem(Path(self.studied_file or self.file))


_TRACES = (
    Trace("KTH-SP2", "KTH-SP2-1996-2.swf.gz", "l_kth_sp2",
          "IBM SP2, Royal Institute of Technology, Stockholm",
          100, 28_490, "1996-09 to 1997-08"),
    Trace("CTC-SP2", "CTC-SP2-1996-3.1-cln.swf.gz", "l_ctc_sp2", "IBM SP2, Cornell Theory Center",
          338, 77_222, "1996-06 to 1997-05"),
    Trace("SDSC-SP2", "SDSC-SP2-1998-4.2-cln.swf.gz", "l_sdsc_sp2",
          "IBM SP2, San Diego Supercomputer Center", 128, 59_715, "1998-04 to 2000-04",
          sha256="e03fe48be50c4ab04d6bb2285296d9c3399e9c1f27ee79b754ad32a14abd9bac"),
    Trace("SDSC-BLUE", "SDSC-BLUE-2000-4.2-cln.swf.gz", "l_sdsc_blue",
          "IBM SP Blue Horizon, San Diego Supercomputer Center",
          1_152, 243_306, "2000-04 to 2003-01", studied_file="SDSC-BLUE-2000-4.1-cln.swf.gz",
          note="Glesser's thesis (2016) has edition 4.1, SDSC-BLUE-2000-4.1-cln"),
    Trace("CEA-Curie", "CEA-Curie-2011-2.1-cln.swf.gz", "l_cea_curie", "Bull Curie, CEA, France",
          93_312, 312_826, "2011-02 to 2012-10", studied_processors=80_640,
          note="Glesser's thesis (2016) simulates 80,640 processors: --processors 80640"),
    Trace("MetaCentrum", "METACENTRUM-2013-3.swf.gz", "l_metacentrum2",
          "MetaCentrum, the Czech national grid", 8_412, 5_731_100, "2013-01 to 2015-04"),
    Trace("KIT-FH2", "KIT-FH2-2016-1.swf.gz", "l_kit_fh2",
          "ForHLR II, Karlsruhe Institute of Technology", 24_048, 114_355, "2016-06 to 2018-01"),
    Trace("HPC2N", "HPC2N-2002-2.2-cln.swf.gz", "l_hpc2n",
          "Linux cluster Seth, High-Performance Computing Center North, Sweden",
          240, 202_871, "2002-07 to 2006-01"),
    Trace("PIK-IPLEX", "PIK-IPLEX-2009-1.swf.gz", "l_pik_iplex",
          "IBM iDataPlex, Potsdam Institute for Climate Impact Research",
          2_560, 742_964, "2009-04 to 2012-07"),
    Trace("LPC-EGEE", "LPC-EGEE-2004-1.2-cln.swf.gz", "l_lpc",
          "Linux cluster of the grid EGEE, LPC Clermont-Ferrand", 140, 234_889,
          "2004-08 to 2005-05"),
    Trace("LANL-CM5", "LANL-CM5-1994-4.1-cln.swf.gz", "l_lanl_cm5",
          "Thinking Machines CM-5, Los Alamos National Laboratory", 1_024, 122_060,
          "1994-10 to 1996-09"),
)  # fmt: skip

#: Name -> trace.
TRACES = {trace.name: trace for trace in _TRACES}
_FOLDED = {name.casefold(): name for name in TRACES}


def is_trace(name: str) -> bool:
    """Tell whether ``name`` is that of a trace of the archive, in any case."""
    return name.casefold() in _FOLDED


def trace_of(source: object) -> Trace | None:
    """Return the trace that a source of jobs names, or one of whose files it is; None of others."""
    if not isinstance(source, str | os.PathLike):
        return None
    name, path = os.fspath(source), Path(source)
    for trace in TRACES.values():
        ours = trace.is_archive_file(path) or trace.is_studied_file(path)
        if ours:
            return trace
    return find_trace(str(name)) if is_trace(str(name)) else None


def find_trace(name: str) -> Trace:
    """Return what is known of the trace ``name``, in any case, or name those there are."""
    if is_trace(name):
        return TRACES[_FOLDED[name.casefold()]]
    raise WorkloadError(unknown("trace", name, map(str.casefold, (*TRACES, *own_traces()))))


def data_folders() -> list[Path]:
    """Return the folders that ``HPCGYM_DATA`` names, several being joined as in ``PATH``."""
    named = os.environ.get("HPCGYM_DATA", "").split(os.pathsep)
    folders = [Path(os.path.expanduser(name)) for name in named if name]
    for folder in folders:
        if not folder.is_dir():
            raise WorkloadError(f"HPCGYM_DATA names {folder}, which is not a folder")
    return folders


def own_traces() -> dict[str, Path]:
    """Return the SWF files in the folders of ``HPCGYM_DATA``, plain or gzip, by name.

    A file ``NAME.swf.gz`` or ``NAME.swf`` is called NAME; names of the archive's traces mean those.
    Of several files of a name that in the first folder counts, and there the packed one.
    """
    traces: dict[str, Path] = {}
    for folder in data_folders():
        for ending in (".swf.gz", ".swf"):
            for path in sorted(folder.glob(f"*{ending}")):
                if is_there(path) and not is_trace(stem(path)):
                    traces.setdefault(stem(path), path)
    return traces


def find_own(name: str) -> Path | None:
    """Return the file of :func:`own_traces` that is called ``name``, in any case, or None."""
    own = own_traces()
    if name in own:
        return own[name]
    return {each.casefold(): path for each, path in own.items()}.get(name.casefold())


def cache_folder() -> Path:
    """Return the folder of the user's cache that fetched traces lie in."""
    return user_cache()


def find(name: str) -> Path | None:
    """Return the file of a trace if it is on this machine, None if not.

    Raises
    ------
    WorkloadError : an unknown trace; a file in the cache that is no longer what was fetched.
    """
    trace = find_trace(name)
    path = _find_in_data_folders(trace)
    if path:
        return path
    path = cache_folder() / trace.file
    if not path.exists():
        return None
    if trace.sha256 not in (None, sha256_of(path)):
        raise WorkloadError(
            f"{path} is not what was fetched (its SHA-256 differs): run hpcgym traces fetch"
            f" {trace.name}"
        )
    return path


def fetch(name: str) -> Path:
    """Return the file of a trace, downloaded into the user's cache if it is not on this machine.

    Raises
    ------
    WorkloadError : an unknown trace, or a download that fails or is not what it should be; nothing
        of it is kept then.
    """
    trace = find_trace(name)
    path = _find_in_data_folders(trace)
    if path:
        return path
    try:
        return downloaded(
            trace.url, cache_folder(), sha256=trace.sha256, begin=_GZIP, kind="gzip file"
        )
    except HpcgymError as error:
        raise WorkloadError(
            f"cannot download {trace.name} from {trace.url}: {error}; get {trace.file} another way,"
            " put it into a folder and set HPCGYM_DATA to that folder"
        ) from None


def _find_in_data_folders(trace: Trace) -> Path | None:
    """Return a trace's file in ``HPCGYM_DATA``: the archive's, that of studies, or of its name."""
    packed = (trace.file, trace.studied_file or trace.file, f"{trace.name}.swf.gz")
    for folder in data_folders():
        for name in (*packed, *(name.removesuffix(".gz") for name in packed)):
            if (folder / name).exists():
                return folder / name
    return None
