"""The lines of a dump of ``sacct -P``: the names of its fields, and the texts between separators.

What stands between the names in line 1 separates the fields, one character or several
(``--delimiter='^|^'``); a dump printed without that line (``-n``) is read by names that are given.
Names of jobs, comments and commands may hold the separator: then what the other fields look like
tells where each begins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress, groupby, islice, pairwise
from pathlib import Path

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.files.tables import csv_records
from hpcgym.workload.io.files import ReadOptions
from hpcgym.workload.io.log_lines import LogRecords, numbered_lines
from hpcgym.workload.io.sacct_fields import OPEN_STATES, STATES, STEP, is_step

#: Fields that a dump must have one of, in words of sacct.
_NEEDED = (
    ("JobID", "JobIDRaw"),
    ("Submit",),
    ("Start",),
    ("ElapsedRaw", "Elapsed", "End"),
    ("AllocCPUS", "NCPUS", "ReqCPUS", "AllocTRES", "ReqTRES"),
)
#: Others that tell that a line has the names of fields.
_TELLING = {
    *(name.casefold() for names in _NEEDED for name in names),
    *("jobname", "partition", "account", "state", "exitcode", "user", "qos", "timelimit"),
}
#: Fields that say something of the scheduling which no simulation goes by.
UNUSED = ("Priority", "Reason", "Reservation")
#: All that are read.
READ = {
    *(name.casefold() for names in (*_NEEDED, UNUSED) for name in names),
    *("state", "eligible", "timelimit", "timelimitraw", "reqmem"),
    *("nnodes", "allocnodes", "nodelist", "reqnodes", "allocgres", "reqgres"),
    *("dependency", "nice", "licenses", "submitline", "user", "uid", "account", "group", "gid"),
    *("qos", "partition", "cluster", "constraints"),
}

_FIELDS = "JobID,JobIDRaw,User,Account,Partition,QOS,State,Submit,Eligible,Start,ElapsedRaw"
_MORE = "TimelimitRaw,AllocCPUS,NNodes,ReqMem,AllocTRES,ReqTRES"
_ADVICE = f"sacct -a -P -o {_FIELDS},{_MORE} prints them"
_MANY = "; is the separator in a name? leave JobName and Comment out of -o, or put SubmitLine last"
_OTHER_SEPARATOR = "; is {!r} in a field, as in AllocTRES? sacct -P puts | between fields"
_MOST_LINES = 1000  # of one record
_ROWS = 4096  # that are taken at once
_STEP = f"dropped: {STEP}"
_BROKEN = "repaired: line with which a record goes on after a line break in a field"
_IN_FIELD = "repaired: separator in a name or a list, told by the fields beside it"
_UNCLEAR = "not used: Constraints that hold a separator, or stand beside a field that may"
#: What SubmitLine tells too: it is left out where its bounds are unclear.
_TOLD_TWICE = "constraints"

_BETWEEN = re.compile(r"(?<=[A-Za-z])[^A-Za-z]+(?=[A-Za-z])")  # names of fields are of letters
_MESSAGE = "sacct: "  # of errors, which a shell may print into the dump

# --- What fields look like ------------------------------------------------------------------------

_TIMES = re.compile(r"\d{4}-\d\d-\d\dT.*|\d{9,11}|Unknown|None|N/A|")
_NUMBERS = re.compile(r"\d*|UNLIMITED|Partition_Limit", re.IGNORECASE)
_DURATIONS = re.compile(r"[\d:.-]*|UNLIMITED|Partition_Limit", re.IGNORECASE)
_LISTS = re.compile(r"[\w/:.-]+=.*|")
_LOOKS = {
    **dict.fromkeys(("jobid", "jobidraw"), re.compile(r"\d+(?:[_+].*)?(?:\..*)?")),
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIMES),
    **dict.fromkeys(("elapsedraw", "timelimitraw", "alloccpus", "ncpus", "reqcpus"), _NUMBERS),
    **dict.fromkeys(("nnodes", "allocnodes", "uid", "gid", "priority"), _NUMBERS),
    **dict.fromkeys(("elapsed", "timelimit", "totalcpu", "cputimeraw"), _DURATIONS),
    **dict.fromkeys(("suspended", "systemcpu", "usercpu", "cputime"), _DURATIONS),
    "consumedenergy": re.compile(r"[\d.]*[KMGTP]?"),
    **dict.fromkeys(("alloctres", "reqtres"), _LISTS),
    "state": re.compile(rf"(?:{'|'.join((*STATES, *OPEN_STATES))})(?:\+| .*)?"),
    "exitcode": re.compile(r"\d+:\d+|"),
}
#: Fields that may hold any separator.
_FREE = {
    *("jobname", "comment", "admincomment", "systemcomment", "extra", "submitline", "workdir"),
    *("container", "constraints", "wckey", "stdin", "stdout", "stderr", "alloctres", "reqtres"),
}
#: Those that may hold a ``|``.
_MAY_HOLD_BAR = _FREE - {"alloctres", "reqtres"}


_KNOWN = "|".join(sorted({*READ, *_TELLING, *_FREE, *_LOOKS}, key=len, reverse=True))
_REPEATED = re.compile(
    rf"(?:{_KNOWN})(?P<separator>.{{1,9}}?)(?:{_KNOWN})(?P=separator)", re.IGNORECASE
)


def is_dump(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of a dump, with separators or without."""
    lines = head[: 1 << 14].decode("utf-8-sig", "replace").split("\n")
    first = next((line for line in lines if not line.startswith(_MESSAGE)), "")
    names = {*_names(first)}
    known = len(_TELLING & names) + ("|" in first)
    return known > 3 or (known > 2 and bool({"jobid", "jobidraw"} & names))


def records_of(path: Path, how: ReadOptions) -> LogRecords:
    """Return the records of a dump; steps are counted, lines that are no records refused.

    Raises
    ------
    WorkloadError : a file that cannot be read; fields that are lacking, all of them named; a line
        with fewer or more fields, unless such lines are skipped.
    """
    log = LogRecords(path, how)
    pieces = log.pieces("a dump of sacct")
    first, at, rest = "", 1, ""
    if how.fields is None:
        at, first, rest = _first_line(log, pieces)
        if not first.strip():
            raise WorkloadError(
                f"{path} is empty, or its line 1 is: it must have the names of fields"
            )
        separator, names = _separator(first), _names(first)
        where = f"line {at}"
        if separator == " ":
            raise WorkloadError(
                f"{path}, {where}: fields are separated by blanks, which cut names: print them with"
                " sacct -P (--parsable2)"
            )
    else:
        separator, names = "", _names(",".join(how.fields))
        where = "the fields that are given"
    closed = names[-1] == ""  # --parsable, with a separator behind the last field too
    if closed:
        names.pop()
    _check_fields(f"{path}, {where}" if how.fields is None else f"{path}: {where}", names)
    dump = _Dump(log, first, where, separator, names, closed)
    log.fill(dump.read, dump.records(chain([(at + 1, rest)] if rest else [], pieces)))
    return log


def _first_line(log: LogRecords, pieces: Iterator[tuple[int, str]]) -> tuple[int, str, str]:
    """Return the number and the text of the first line that is no message, and what follows it."""
    for first, piece in pieces:
        start = 0
        for line, text, _ in numbered_lines(first, piece):
            start = piece.find("\n", start) + 1 or len(piece)
            if not _is_message(log, text):
                return line, text, piece[start:]
    return 1, "", ""


def _is_message(log: LogRecords, text: str) -> bool:
    """Tell whether a line is what sacct said of an error, which is counted."""
    log.counts.update(["dropped: message of sacct"] * text.startswith(_MESSAGE))
    return text.startswith(_MESSAGE)


@dataclass
class _Dump:
    """Goes through the lines of a dump, plain ones many at once.

    A piece of the file is plain if each of its lines has as many separators as a record: they stand
    between its fields. What else a line may be, a part of a record, the names of fields again or a
    wrong one, is found out line by line.
    """

    log: LogRecords
    first: str  # the line with the names of fields; nothing if there is none
    where: str
    separator: str
    names: list[str]
    closed: bool

    def __post_init__(self) -> None:
        names = self.names
        self.again = [(names.index(name), k) for k, name in enumerate(names) if name in names[:k]]
        both = ("jobname", "submitline")
        self.named_so = [names.index(name) for name in both] if {*both} <= {*names} else []
        self.named = names.index("jobid" if "jobid" in names else "jobidraw")
        self.read = {name: names.index(name) for name in names if name in READ}
        self.joins = bool(self.separator) and not _MAY_HOLD_BAR.isdisjoint(names)

    def records(
        self, pieces: Iterable[tuple[int, str]]
    ) -> Iterator[tuple[Iterable[int], dict[str, Iterable[str]]]]:
        """Go through the records of jobs, some at a time: their lines, and their fields."""
        for plain, group in groupby(self._told_apart(pieces), lambda piece: bool(piece[2])):
            if plain:
                for first, _, lines in group:
                    ids = (line.split(self.separator, self.named + 1) for line in lines)
                    jobs = [not is_step(fields[self.named]) for fields in ids]
                    self.log.count(_STEP, np.logical_not(jobs))
                    rows = [line.split(self.separator) for line in compress(lines, jobs)]
                    if rows:
                        yield self._fields(compress(range(first, first + len(lines)), jobs), rows)
            else:
                numbered = self._rows(chain.from_iterable(numbered_lines(*of[:2]) for of in group))
                while some := [*islice(numbered, _ROWS)]:
                    yield self._fields(*zip(*some, strict=True))

    def _told_apart(
        self, pieces: Iterable[tuple[int, str]]
    ) -> Iterator[tuple[int, str, list[str]]]:
        """Go through pieces, with the lines of plain ones, no lines of others."""
        rest = ""
        for at, text in pieces:
            first, piece = at - bool(rest), rest + text
            lines, rest = self._lines(piece), ""
            if lines:  # the last of these records may go on in the next piece
                rest = f"{lines.pop()}\n"
                at = first + len(lines)
            if lines or not rest:
                yield first, piece, lines
        if rest:
            yield at, rest, []

    def _lines(self, piece: str) -> list[str]:
        """Return the lines of a plain piece, else nothing."""
        separator, piece = self.separator, piece.replace("\r\n", "\n")
        known = self.first or separator.join(self.names)
        begun, folded = f"\n{piece}", piece if self.first else piece.casefold()
        if self.again or not separator or begun[-1] != "\n" or "\r" in piece or known in folded:
            return []
        lines = [] if f"\n{_MESSAGE}" in begun or '\n"' in begun else piece[:-1].split("\n")
        right = {line.count(separator) for line in lines} == {len(self.names) - 1 + self.closed}
        closed = not self.closed or all(line.endswith(separator) for line in lines)
        return lines if right and closed else []

    def _fields(
        self, lines: Iterable[int], rows: Iterable[Sequence[str]]
    ) -> tuple[Iterable[int], dict[str, Iterable[str]]]:
        """Return the lines of records, and their fields as columns."""
        columns = [*zip(*rows, strict=True)]
        fields: dict[str, Iterable[str]] = {
            name: map(str.strip, columns[k]) for name, k in self.read.items()
        }
        if self.named_so:
            name, command = (columns[k] for k in self.named_so)
            fields["submitline"] = map(_with_whole_name, name, command)
        return lines, fields

    def _rows(self, lines: Iterator[tuple[int, str, str]]) -> Iterator[tuple[int, list[str]]]:
        """Go through the records among lines of any kind: the number and the fields of each."""
        log, names = self.log, self.names
        lines = (line for line in lines if not _is_message(log, line[1]))
        if self.joins:
            lines = _joined(lines, self.separator, names, log)
        for line, text, hint in lines:
            if not text.strip():
                continue
            separator = self.separator = self.separator or _separator_of(text, len(names))
            if text == self.first or (
                not self.first and text.casefold().startswith(separator.join(names))
            ):
                log.counts["dropped: line with the names of fields again"] += 1
                continue
            text = text.removesuffix(separator) if self.closed else text
            fields = _split(text, separator, names, log)
            if len(fields) != len(names):
                few = "few" if len(fields) < len(names) else "many"
                if few == "many":
                    hint = _MANY if separator == "|" else _OTHER_SEPARATOR.format(separator)
                problem = f"{len(fields)} fields, and {self.where}, their names, {len(names)}{hint}"
                log.refuse(line, problem, f"line with too {few} fields")
                continue
            if is_step(fields[self.named]):  # most lines
                log.counts[_STEP] += 1
                continue
            for former, other in self.again:
                if fields[former] != fields[other]:
                    problem = f"{names[former]}, a field that stands there twice, has two values"
                    log.refuse(line, problem, f"line with two values of {names[former]}")
            yield line, fields


def _with_whole_name(name: str, command: str) -> str:
    """Return a command in which a name is one word: sacct does not quote the words of a command."""
    name = name.strip()
    return (command.replace(name, name.replace(" ", "_"), 1) if " " in name else command).strip()


def _joined(
    lines: Iterator[tuple[int, str, str]], separator: str, names: Sequence[str], log: LogRecords
) -> Iterator[tuple[int, str, str]]:
    """Go through lines; those of a record with line breaks in a field are one, and are counted.

    Lines are joined if they have the fields of a record together, which look as they should, and
    the later ones too few by themselves; behind a whole record, if its last field may have them and
    they have no separator.
    """
    needed, begun, bars = len(names) - 1, list[tuple[int, str, str]](), 0
    whole: list[tuple[int, str, str]] = []  # a record, and the lines behind it that are its own
    goes_on = names[-1] in _MAY_HOLD_BAR
    for line in lines:
        count = line[1].count(separator)
        if goes_on and whole and not count and line[1].strip():
            log.counts[_BROKEN] += 1
            whole.append(line)
            continue
        if whole:
            yield _one_line(whole)
            whole = []
        if count >= needed:
            yield from begun
            begun, bars = [], 0
            whole = [line]
            continue
        begun.append(line)
        bars += count
        if bars < needed and len(begun) < _MOST_LINES:
            continue
        joined = _one_line(begun)
        fields = _split(joined[1], separator, names, log)
        if len(begun) > 1 and len(fields) == len(names) and all(map(_looks, names, fields)):
            log.counts[_BROKEN] += sum(bool(part.strip()) for _, part, _ in begun[1:])
            whole = [joined]
        else:
            yield from begun
        begun, bars = [], 0
    if whole:
        yield _one_line(whole)
    yield from begun


def _one_line(lines: Sequence[tuple[int, str, str]]) -> tuple[int, str, str]:
    """Return several lines as one, with the number of the first."""
    number, text, hint = lines[0]
    if len(lines) > 1:
        text = " ".join(part.rstrip("\r\n") for _, part, _ in lines)
    return number, text, hint


def _separator(first: str) -> str:
    """Return what stands between the names of fields in line 1, of a blank and more the latter."""
    if match := _REPEATED.search(first):  # also of letters, as by --delimiter='\\t'
        return match["separator"].strip(' "') or " "
    between = Counter(run.strip(' "') or " " for run in _BETWEEN.findall(first))
    return between.most_common(1)[0][0] if between else "|"


def _separator_of(text: str, number: int) -> str:
    """Return what stands between so many fields in a line, or more texts, ``|`` if nothing does."""
    separators: set[str] = {"|", *re.findall(r"[^\w\s:./+=-]+|\t", text)}
    surplus = {separator: text.count(separator) + 1 - number for separator in sorted(separators)}
    fit = [separator for separator in surplus if surplus[separator] >= 0]
    return min(fit, key=lambda separator: (surplus[separator] > 1, -len(separator)), default="|")


def _names(first: str) -> list[str]:
    """Return the names of fields in a line, in lower case, without widths such as ``%30``."""
    names = first.rstrip("\r\n").split(_separator(first))
    return [name.strip(' \t"').partition("%")[0].casefold() for name in names]


def _split(text: str, separator: str, names: Sequence[str], log: LogRecords) -> list[str]:
    """Return the fields of a line; as many as there are separators where that is not clear."""
    fields = text.split(separator)
    if '"' in text and len(separator) == 1 and (fields[0][:1] == '"' or len(fields) > len(names)):
        for _, quoted in csv_records([text], str(log.path), WorkloadError, separator):
            if len(quoted) == len(names):  # as tables are written
                return quoted
    if len(fields) <= len(names):
        return fields
    last = len(names) - 1
    closed = [] if fields[-1].strip() else [fields[:-1]]
    for texts in (*closed, fields):
        if len(texts) == len(names) and all(map(_looks, names, texts)):
            return texts
        if names[last] == "submitline" and all(map(_looks, names[:last], texts)):
            return [*texts[:last], separator.join(texts[last:])]  # it has all that is left
        starts, clear = _starts(texts, names)
        if starts:
            log.counts[_IN_FIELD] += 1
            split = [separator.join(texts[a:b]) for a, b in pairwise(starts)]
            if not clear:
                log.counts[_UNCLEAR] += 1
                split[names.index(_TOLD_TWICE)] = ""
            return split
    if separator == "|" and names[last] == "submitline" and not _MAY_HOLD_BAR & {*names[:last]}:
        return [*fields[:last], separator.join(fields[last:])]  # a field before it is wrong
    return fields


def _starts(texts: Sequence[str], names: Sequence[str]) -> tuple[list[int], bool]:
    """Return the text at which each field begins, and the end of the last; nothing if unclear.

    The bounds of fields that are not used may be unclear, and those of constraints: of these it is
    told whether they are clear.
    """
    surplus = len(texts) - len(names)

    def ends(place: int, start: int) -> list[int]:
        """Return where a field may end that begins at a text."""
        places = []
        most = start + 1 + (surplus if names[place] in _FREE else 0)
        for end in range(start + 1, min(most, len(texts)) + 1):
            if not _looks(names[place], texts[end - 1]):
                break
            places.append(end)
        return places

    starts = [{0}]
    for place in range(len(names)):
        starts.append({end for start in starts[place] for end in ends(place, start)})
    starts[-1] &= {len(texts)}
    for place in reversed(range(len(names))):
        starts[place] = {at for at in starts[place] if starts[place + 1] & {*ends(place, at)}}
    used = READ - {name.casefold() for name in UNUSED}
    unclear = {
        name
        for name, bounds in zip(names, pairwise(starts), strict=True)
        if name in used and max(map(len, bounds)) > 1
    }
    if not starts[0] or unclear - {_TOLD_TWICE}:
        return [], False
    chosen = [0]  # where it is unclear, of fields that are not read, the first that will do
    for place in range(len(names)):
        chosen.append(min(starts[place + 1] & {*ends(place, chosen[-1])}))
    return chosen, not unclear


def _looks(name: str, text: str) -> bool:
    """Tell whether a text may be that of a field, or a part of it."""
    shape = _LOOKS.get(name)
    return shape is None or shape.fullmatch(text.strip()) is not None


def _check_fields(where: str, names: list[str]) -> None:
    """Say which fields are lacking."""
    lacking = [
        "one of " + ", ".join(fields) if len(fields) > 1 else fields[0]
        for fields in _NEEDED
        if not {name.casefold() for name in fields} & {*names}
    ]
    if lacking:
        raise WorkloadError(f"{where}: fields lack {'; '.join(lacking)}. {_ADVICE}")
