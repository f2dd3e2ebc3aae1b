"""Options of the commands by which jobs of Slurm are submitted, such as sacct's ``SubmitLine``.

Slurm joins the words of a command with blanks (``slurm_option_get_argv_str`` in ``slurm_opt.c``),
and reads options up to the first word that is neither an option nor the value of one: the script.
What stands behind it are arguments of the script, which may look like options.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

#: Options of sbatch, salloc and srun without a value, and those that have one behind ``=`` alone,
#: of Slurm 22.05 to 25.05 (``slurm_opt.c``). All others have a value, which may be the next word.
_ALONE = (
    " bell contiguous debugger-test disable-status exact external get-user-env help hold ignore-pbs"
    " interactive label multi-prog no-allocate no-bell no-requeue no-shell overcommit oversubscribe"
    " parsable preserve-env pty quiet quit-on-interrupt reboot requeue spread-job stepmgr test-only"
    " unbuffered usage use-min-nodes verbose version wait wait-for-children whole bcast compress"
    " exclusive external-launcher immediate kill-command kill-on-bad-exit nice no-kill"
    " oom-kill-step overlap propagate resv-ports send-libs x11"
)
_ALONE_SHORT = "hHlZOsEQuvVXW"
_JOINED_SHORT = "IkK"
_OF_SRUN = {"wait", "W"}  # which has a value there

#: Options that are read -> the least of their letters, for they may be shortened; one letter each.
_SHORTENED = {
    "nice": "ni",
    "dependency": "dep",
    "licenses": "li",
    "constraint": "cons",
    "reservation": "rese",
    "partition": "part",
    "cpus-per-task": "cpus-per-t",
    "ntasks-per-node": "ntasks-per-n",
    "mem-per-cpu": "mem-per-c",
}
_LETTERS = {
    **{"C": "constraint", "d": "dependency", "G": "gpus", "L": "licenses"},
    **{"N": "nodes", "c": "cpus-per-task", "n": "ntasks", "p": "partition", "t": "time"},
}


def options_of(line: str) -> Iterator[tuple[str, str | None]]:
    """Yield the long name of each option of a command, and its value; None: it has none.

    >>> list(options_of("sbatch -L ansys:2 --ni=5 -HN 4 run.sh --nice=9"))
    [('licenses', 'ansys:2'), ('nice', '5'), ('H', None), ('nodes', '4')]
    """
    command, *words = line.split() or [""]
    for name, value in options_in(words, _OF_SRUN if command.endswith("srun") else ()):
        if not name:
            return
        yield name, value


def options_in(
    words: Iterable[str], valued: Collection[str] = ()
) -> Iterator[tuple[str, str | None]]:
    """Yield the same of words; at the first that is no option, ``""`` and that word, the last.

    ``valued`` : options that have a value, against ``_ALONE``.
    """
    rest = iter(words)
    for word in rest:
        if word in ("-", "--") or not word.startswith("-"):
            yield "", word
            return
        if word.startswith("--"):
            name, joined, value = word[2:].partition("=")
            name = _in_full(name)
            alone = name not in valued and f" {name}" in _ALONE
            yield name, _bare(value) if joined else None if alone else _bare(next(rest, ""))
            continue
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            name = _LETTERS.get(letter, letter)
            if letter in _ALONE_SHORT and letter not in valued:
                yield name, None
            else:
                yield name, letters if letter in _JOINED_SHORT else _bare(letters or next(rest, ""))
                break


def value_of(line: str, option: str) -> str | None:
    """Return the last value of an option of a command, "" where it has none; None: not given."""
    values = [value or "" for name, value in options_of(line) if name == option]
    return values[-1] if values else None


def _in_full(name: str) -> str:
    """Return the name of an option that may be shortened."""
    for full, least in _SHORTENED.items():
        if full.startswith(name) and name.startswith(least):
            return full
    return name


def _bare(value: str) -> str:
    """Return a value without quotes, which a shell takes away."""
    return value.strip("\"'")
