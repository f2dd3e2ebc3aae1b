"""What pictures are drawn on: sizes, fonts, colours, files; the colour of each job."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import RLock
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.dates import zero_of, zone_of
from hpcgym.errors import HpcgymError, installing
from hpcgym.files.recorded import PICTURE_KEYS, record_text
from hpcgym.files.writing import whole_file
from hpcgym.report.tables import Results, drawable, subtitle
from hpcgym.units import DAY_S, HOUR_S, MINUTE_S
from hpcgym.words import counted
from hpcgym.workload.io.swf_header import called, names_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure  # what draws anything names both as ours

    from hpcgym.schedule.result import Result


# --- What all pictures share ----------------------------------------------------------------------

#: Colours that people with any common kind of colour blindness tell apart (Okabe and Ito, 2008).
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY_BLUE, YELLOW, BLACK = "#E69F00", "#56B4E9", "#F0E442", "#000000"
DARK_GREY, GREY, LIGHT_GREY = "#555555", "#A6A6A6", "#DDDDDD"

#: Numbers stay with the word before them, and units with their number.
_BEFORE_NUMBERS = re.compile(r"\s+(?=\d|%|(?:d|h|min|s)$)")
LETTERS_PER_INCH = 15  # of 8 points
_LETTERS_OF_NAMES = 6.5  # for each inch of a figure: room is left for what stands beside a name

#: Colours and dashes of lines: yellow is left out, which is too pale on white.
LINE_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY_BLUE, BLACK)
LINE_DASHES = ("-", "--", ":", "-.")

#: Picture formats, by the ending of the file's name.
PICTURE_SUFFIXES = (".png", ".svg", ".pdf")

_NARROW_INCHES, _FEW_DATES = 6, 7  # of a figure; such a one has room for so many
#: Units of time [s], the largest first.
UNITS = ((DAY_S, "days"), (HOUR_S, "hours"), (MINUTE_S, "minutes"), (1, "seconds"))


#: Fonts of PDF and PostScript are embedded as TrueType: many journals refuse Type 3, the default.
#: Names inside SVG are the same each time: by default they are random.
_SETTINGS: Any = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.hashsalt": "hpcgym"}
_SETTLED = RLock()  # the settings are those of the process, and threads draw at once


def unit_of(seconds: float) -> tuple[int, str]:
    """Return the largest unit of time of which there are two, or else seconds: [s], its name."""
    return next((unit for unit in UNITS if seconds >= 2 * unit[0]), UNITS[-1])


def new_figure(width: float, height: float, dpi: int = 150) -> Figure:
    """Return an empty figure of a size in inches, drawn without display and without pyplot.

    Its PDF and PostScript files embed TrueType fonts, not Type 3, which journals refuse.

    Raises
    ------
    HpcgymError : matplotlib is not installed; the message says how to install it.
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = _embedding()(figsize=(width, height), dpi=dpi, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


@cache
def _embedding() -> type[Figure]:
    """Return the kind of figure whose files have fonts that journals take, however it is saved."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    class EmbeddingFigure(Figure):
        def savefig(self, *args: Any, **options: Any) -> None:
            with _SETTLED, rc_context(_SETTINGS):
                super().savefig(*args, **options)

    return EmbeddingFigure


def why_no_pictures() -> str:
    """Return that there is no matplotlib, and what to install; nothing if it is there."""
    try:
        import_module("matplotlib.figure")
    except ImportError:
        return f"pictures need matplotlib: {installing('report')}"
    return ""


def require_matplotlib() -> None:
    """Raise an HpcgymError that says what to install if there is no matplotlib."""
    if missing := why_no_pictures():
        raise HpcgymError(missing)


def axes_or_new(axes: Axes | None, width: float = 10, height: float = 4) -> Axes:
    """Return the axes given, or those of a new figure.

    Raises
    ------
    HpcgymError : something else, or matplotlib is not installed.
    """
    if axes is not None and not hasattr(axes, "plot"):
        raise HpcgymError(f"axes must be of matplotlib, or None for a new figure, not {axes!r}")
    return new_figure(width, height).add_subplot() if axes is None else axes


def begun(
    results: Results, axes: Axes | None, width: float = 10, height: float = 4
) -> tuple[dict[str, Result], Axes, str]:
    """Return results by name, where to draw them, and a note of what they are for a new figure."""
    parts = drawable(results)
    return parts, axes_or_new(axes, width, height), "" if axes else subtitle(parts)


def figure_of(drawn: Axes | Figure) -> Figure:
    """Return the whole figure that axes are part of, or the figure itself."""
    figure = drawn.get_figure(root=True)
    assert figure is not None
    return figure


def save_figure(
    figure: Figure,
    file: Path | IO[bytes],
    suffix: str,
    record: Mapping[str, Any] | None = None,
) -> None:
    """Write a figure in the format of ``suffix``, without the date, so that files can be compared.

    Parameters
    ----------
    figure : to write.
    file : its path, or an open one.
    suffix : one of :data:`PICTURE_SUFFIXES`.
    record : where it is from, for the picture's metadata; None: nothing.

    Raises
    ------
    HpcgymError : the file cannot be written.
    """
    # What the format calls the time of creation and the program; the latter is a web address.
    unwanted = {".png": ("Software",), ".svg": ("Date", "Creator"), ".pdf": ("CreationDate",)}
    metadata: dict[str, Any] = dict.fromkeys(unwanted[suffix])
    if record is not None:
        metadata[PICTURE_KEYS[suffix]] = record_text(record)
    # in memory first: on a full disk matplotlib's writer of PDF ends in an error of its own
    drawn = io.BytesIO()
    figure.savefig(drawn, format=suffix[1:], metadata=metadata)
    if isinstance(file, Path):
        with whole_file(file) as part:
            part.write_bytes(drawn.getbuffer())
    else:
        file.write(drawn.getbuffer())


def picture_suffix(path: Path) -> str:
    """Return the ending that tells a picture's format, or say which there are."""
    suffix = path.suffix.casefold()
    if suffix not in PICTURE_SUFFIXES:
        raise HpcgymError(f"{path}: a picture's name ends in {', '.join(PICTURE_SUFFIXES)}")
    return suffix


def line_style(place: int) -> dict[str, Any]:
    """Return colour and dashes of the line at ``place``; 28 lines differ.

    Neighbours differ in their dashes too, so that they are told apart where colours are not: seven
    colours and four dashes, both in turn, come together again after 28.
    """
    return {
        "color": LINE_COLOURS[place % len(LINE_COLOURS)],
        "linestyle": LINE_DASHES[place % len(LINE_DASHES)],
    }


def shortened(names: Iterable[str], width: float) -> dict[str, str]:
    """Return what names are called in a figure so wide [inches]: long ones lack their middle.

    Different names stay different.
    """
    most = int(width * _LETTERS_OF_NAMES) - 1  # without the dots
    last = most // 2
    short_names: dict[str, str] = {}
    for name in names:
        short = name if len(name) <= most + 1 else f"{name[: most - last]}…{name[-last:]}"
        numbered = (short if n == 1 else f"{short} ({n})" for n in count(1))
        short_names[name] = next(
            unused for unused in numbered if unused not in short_names.values()
        )
    return short_names


def title(axes: Axes, text: str, note: str = "", legend_rows: int = 0) -> None:
    """Put a title above the axes, a note in grey below it, and leave room for a legend."""
    lines = textwrap.wrap(note, int(figure_of(axes).get_figwidth() * LETTERS_PER_INCH))
    legend_pt = 14 * legend_rows + 5
    axes.set_title(
        text, loc="left", fontsize=10, fontweight="bold", pad=legend_pt + 11 * len(lines)
    )
    if lines:
        axes.annotate(
            "\n".join(lines),
            (0, 1),
            (0, legend_pt),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=8,
            color=DARK_GREY,
            verticalalignment="bottom",
        )


def legend_above(axes: Axes, names: Sequence[str], **options: Any) -> int:
    """Put a legend between title and axes and return its lines, which ``title`` leaves room for.

    Names that are longer than the figure is wide go on in lines below.
    """
    letters = (figure_of(axes).get_figwidth() - 1) * LETTERS_PER_INCH
    columns = len(names)
    names = ["\n".join(_in_lines(name, int(letters))) for name in names]
    if sum(len(name) + 5 for name in names) > letters:
        columns = max(
            int(letters / (max(len(line) for name in names for line in name.split("\n")) + 5)), 1
        )
    legend = axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        fontsize=8,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.2,
        columnspacing=1.2,
        labelspacing=0.3,
        handlelength=1.6,
        handletextpad=0.5,
        **options,
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)  # users and codes may have any name
        text.set_text(name)
    rows = -(-len(names) // columns)
    filled = (names[at : at + rows] for at in range(0, len(names), rows))
    return max(sum(name.count("\n") + 1 for name in column) for column in filled)


def labelled(axes: Axes) -> list[Any]:
    """Return the lines of axes that have a name."""
    return [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]


# in points
_SPACING = 1  # between the places at which lines are looked at
_AWAY = (2, 9, 18, 27)  # between a line and its name, tried in turn
_FAR = 14  # farther from other lines is no better


def label_curves(axes: Axes) -> bool:
    """Write the name of each line beside it, in its colour, clear of all lines and other names.

    If there is room only farther away, a thin line leads from the name to the curve.

    Returns
    -------
    Whether there was room for all names; if not, none is written.
    """
    figure = figure_of(axes)
    figure.draw_without_rendering()  # places are known then
    frame, lines = axes.get_window_extent(), labelled(axes)
    points = {line: _pixels(axes, line) for line in axes.get_lines()}
    every = np.concatenate([*points.values()])
    taken: list[NDArray[np.float64]] = []
    texts: list[Any] = []
    for line in lines:
        others = [
            places for other, places in points.items() if other in lines and other is not line
        ]
        text = axes.text(
            0, 0, str(line.get_label()), fontsize=7, color=line.get_color(), parse_math=False,
            transform=axes.transAxes, ha="left", va="bottom", in_layout=False,
        )  # fmt: skip
        texts.append(text)
        extent = text.get_window_extent()
        size = np.array([extent.width, extent.height])
        apart, point = np.concatenate(others or [every[:0]]), figure.dpi / 72
        low, high = np.array(frame.min) + 2 * point, np.array(frame.max) - 2 * point
        own = points[line]
        own = own[((own > low) & (own < high)).all(axis=1)]
        for away in _AWAY:
            nearest = away * point if away == _AWAY[0] else 0.0
            place_and_end = _place_of(
                own, apart, every, taken, size, frame, away * point, nearest, _FAR * point
            )
            if place_and_end is not None:
                break
        else:
            for text in texts:
                text.remove()
            return False
        place, end = place_and_end
        taken.append(np.concatenate([place, place + size]))
        inverted = axes.transAxes.inverted()
        text.set_position(tuple(inverted.transform(place)))
        if away > _AWAY[0]:
            begin = np.clip(end, place, place + size)
            leader = axes.plot(
                *inverted.transform([begin, end]).T, color=line.get_color(), linewidth=0.5,
                transform=axes.transAxes, label="_leader",
            )  # fmt: skip
            texts += leader
    return True


def _pixels(axes: Axes, line: Any) -> NDArray[np.float64]:
    """Return points along a line, (n, 2) pixels, that are close to each other and inside axes."""
    step = _SPACING * figure_of(axes).dpi / 72
    data = np.asarray(line.get_xydata(), dtype=np.float64)
    if line.get_drawstyle() == "steps-post":
        data = np.stack([np.repeat(data[:, 0], 2)[1:], np.repeat(data[:, 1], 2)[:-1]], axis=1)
    with np.errstate(all="ignore"):
        places = np.asarray(axes.transData.transform(data))
    places = places[np.isfinite(places).all(axis=1)]
    if len(places) > 1:
        far = np.concatenate([[0], np.hypot(*np.diff(places, axis=0).T).cumsum()])
        at = np.linspace(0, far[-1], max(int(far[-1] / step), 2))
        places = np.stack([np.interp(at, far, coordinates) for coordinates in places.T], axis=1)
    frame = axes.get_window_extent()
    within = ((places >= frame.min) & (places <= frame.max)).all(axis=1)
    return np.asarray(places[within])


def _place_of(
    own: NDArray[np.float64],
    others: NDArray[np.float64],
    every: NDArray[np.float64],
    taken: Sequence[NDArray[np.float64]],
    size: NDArray[np.float64],
    frame: Any,
    away: float,
    nearest: float,
    far: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the lower left corner of a name beside its line, and where on the line; or None.

    It is farther from other lines than ``nearest``, as far as it can be up to ``far``. All are
    pixels.
    """
    sides = np.array([(0, 0), (-1, 0), (0, -1), (-1, -1)])
    pads = away * (1 + 2 * sides)
    corners = (own[:, None] + (sides * size + pads)[None]).reshape(-1, 2)
    on_line = np.repeat(own, len(sides), axis=0)
    ends = corners + size
    free = ((corners >= frame.min) & (ends <= frame.max)).all(axis=1)
    for box in taken:
        free &= (ends < box[:2]).any(axis=1) | (corners > box[2:]).any(axis=1)
    corners, ends, on_line = corners[free], ends[free], on_line[free]
    inside = (every[None] > corners[:, None] - 1) & (every[None] < ends[:, None] + 1)
    clear = ~inside.all(axis=2).any(axis=1)
    corners, on_line = corners[clear], on_line[clear]
    if not len(corners):
        return None
    beside = np.abs(corners[:, None] + size / 2 - others[None]) - size / 2  # of a box and a point
    distance = np.hypot(*np.moveaxis(beside.clip(min=0), 2, 0)).min(axis=1, initial=np.inf)
    if distance.max() <= nearest:  # it might be read as the name of another line
        return None
    gap = np.linalg.norm(on_line[:, None] - others[None], axis=2).min(axis=1, initial=np.inf)
    best = np.argmax(distance.clip(max=far) + gap.clip(max=far))
    return corners[best], on_line[best]


def headed(axes: Axes, heading: str, note: str = "") -> Axes:
    """Put a title above the axes, and below it a legend of what has labels, if anything has."""
    _, names = axes.get_legend_handles_labels()
    title(axes, heading, note, legend_above(axes, names) if names else 0)
    return axes


def _in_lines(name: str, letters: int) -> list[str]:
    """Return a text of a legend in lines."""
    together = _BEFORE_NUMBERS.sub("\u00a0", name)  # textwrap breaks no line there
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(together, letters)]


def plain(axes: Axes, grid: str | None = "y") -> None:
    """Take away what is not needed of the frame, and draw a light grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.xaxis.label.set_fontsize(9)
    axes.yaxis.label.set_fontsize(9)
    if grid:
        axes.grid(axis=grid, color=LIGHT_GREY, linewidth=0.6)  # type: ignore[arg-type]
        axes.set_axisbelow(True)


@dataclass(frozen=True)
class TimeAxis:
    """How times in seconds become places on a picture's axis.

    Dates where the log tells when it began, in its own time zone; else days, hours, minutes or
    seconds since time 0 of the log, or since the first submission where that is far away.

    Attributes
    ----------
    first, last : of the picture, seconds; whole ones unless jobs share nodes.
    zone : time zone of the dates, None without dates.
    origin : seconds at which the axis has its 0; for dates those of 1970, hence negative.
    unit_s : seconds of one unit of the axis.
    label : of the axis.
    """

    first: float
    last: float
    zone: tzinfo | None
    origin: float
    unit_s: int
    label: str

    @property
    def midnight(self) -> float:
        """A time [s] at which a day begins: on Monday at midnight in the zone, or at the origin."""
        if self.zone is None:
            return self.origin
        began = datetime.fromtimestamp(self.first - self.origin, self.zone)
        return (
            self.first
            - began.weekday() * DAY_S
            - (began - began.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
        )

    def place(self, seconds: NDArray[Any] | float) -> Any:
        """Return where times lie on the axis."""
        return (np.asarray(seconds, dtype=np.float64) - self.origin) / self.unit_s

    def seconds(self, place: float) -> float:
        """Return which time lies at a place of the axis."""
        return place * self.unit_s + self.origin

    def apply(self, axes: Axes) -> None:
        """Set limits, ticks and label."""
        first, last = self.place(self.first), self.place(self.last)
        axes.set_xlim(first, last if last > first else first + 1)
        if self.zone is not None:
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            most = _FEW_DATES if figure_of(axes).get_figwidth() < _NARROW_INCHES else None
            locator = AutoDateLocator(tz=self.zone, maxticks=most)  # type: ignore[no-untyped-call]
            axes.xaxis.set_major_locator(locator)
            formatter = ConciseDateFormatter(locator, tz=self.zone)  # type: ignore[no-untyped-call]
            axes.xaxis.set_major_formatter(formatter)
        axes.set_xlabel(self.label)
        axes.xaxis.offsetText.set_fontsize(8)


def time_axis(results: Mapping[str, Result], span: tuple[float, float] | None = None) -> TimeAxis:
    """Return the axis on which all of the results have room, or that of a span of time [s]."""
    parts = list(results.values())
    begin = min(part.begin for part in parts)
    first, last = span or (begin, max(part.end.max().item() for part in parts))
    header = parts[0].workload.header
    began = zero_of(header, last)
    if began is not None:
        zone, name = zone_of(header)
        years = {datetime.fromtimestamp(began + at, zone).year for at in (first, last)}
        label = f"{' to '.join(str(year) for year in sorted(years))} ({name} time)"
        return TimeAxis(first, last, zone, -began, DAY_S, label)
    unit_s, unit = unit_of(last - first)
    # A slice keeps the times of its trace; only beside its own length are they worth keeping.
    if first <= 10 * (last - first):
        return TimeAxis(first, last, None, 0, unit_s, f"time ({unit})")
    return TimeAxis(first, last, None, first, unit_s, f"time since the first submission ({unit})")


# --- Which colour each job has in a Gantt chart ---------------------------------------------------

#: Colours of the users with most processor time, and of all others.
USER_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY_BLUE, VERMILLION, YELLOW)
#: Several greys, or all others' jobs would look like one.
OTHERS_COLOURS = ("#8C8C8C", "#A6A6A6", "#BFBFBF")
#: Colours of jobs in turn, where users are unknown.
JOB_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY_BLUE, VERMILLION)

#: Job speedups below which a colour ends; the same in all pictures, so that they compare.
SPEEDUP_EDGES = (0.8, 0.9, 1 - 1e-9, 1 + 1e-9, 1.1, 1.25)
#: What they are called: slower jobs are orange, faster ones blue, the farther from 1 the darker.
SPEEDUP_NAMES = (
    "below 0.8",
    "0.8 to 0.9",
    "0.9 to 1",
    "1",
    "1 to 1.1",
    "1.1 to 1.25",
    "above 1.25",
)
SPEEDUP_COLOURS = ("#A63603", "#E6752E", "#FBBE86", "#C8C8C8", "#A9D3EC", "#4A98CC", "#08519C")


class Palette(NamedTuple):
    """``colours`` (n_colours, 3), which of them each job has, and the meaning of some."""

    colours: NDArray[np.float64]
    of_job: NDArray[np.int64]
    meaning: dict[str, str]


def palette_of(result: Result, span: tuple[float, float] | None = None) -> Palette:
    """Give the jobs colours: by their speedups where any shares nodes, else by user.

    ``span``: from when until when users count [s]; None: always.
    """
    shared = result.coschedule
    if shared is None or not shared.shape.any():
        return _by_user(result, span)
    return _by_speedup(result)


def speedup_classes(result: Result) -> NDArray[np.int64]:
    """Return the place in ``SPEEDUP_NAMES`` of the speedup of each job, (n_jobs,)."""
    return np.searchsorted(SPEEDUP_EDGES, result.job_speedup, "right")


def _by_user(result: Result, span: tuple[float, float] | None) -> Palette:
    """Give a colour to each of the users with most processor time within a span of time."""
    users, user = np.unique(result.workload.user_id, return_inverse=True)
    if users.size == 1:
        return Palette(_rgb(JOB_COLOURS), np.arange(user.size) % len(JOB_COLOURS), {})
    begin, end = span or (-np.inf, np.inf)
    ran = np.minimum(result.start + result.run_time, end) - np.maximum(result.start, begin)
    area = np.bincount(user, np.maximum(ran, 0) * result.workload.requested_processors)
    names = names_of(result.workload, "user_id")
    return _by_area([called(names, "user", number) for number in users.tolist()], user, area)


def _by_speedup(result: Result) -> Palette:
    """Give a colour to each class of speedups."""
    of_job = speedup_classes(result)
    shares = np.bincount(of_job, minlength=len(SPEEDUP_NAMES)) / of_job.size
    meaning = {
        f"{name} ({_percent(share)} of jobs)": colour
        for name, share, colour in zip(SPEEDUP_NAMES, shares, SPEEDUP_COLOURS, strict=True)
        if share
    }
    (first, colour), *others = meaning.items()
    return Palette(_rgb(SPEEDUP_COLOURS), of_job, {f"job speedup {first}": colour, **dict(others)})


def _by_area(names: Sequence[str], owner: NDArray[np.int64], area: NDArray[Any]) -> Palette:
    """Give a colour to those that have most of the area, greys to all others."""
    seen = int(np.count_nonzero(area))
    busiest = np.argsort(-area, kind="stable")[: min(seen, len(USER_COLOURS))]
    place = len(USER_COLOURS) + np.arange(len(names)) % len(OTHERS_COLOURS)
    place[busiest] = np.arange(busiest.size)
    meaning = {
        f"{names[row]} ({_percent(area[row] / area.sum())})": colour
        for row, colour in zip(busiest, USER_COLOURS, strict=False)
    }
    if seen > busiest.size:
        meaning[counted(seen - busiest.size, "other")] = OTHERS_COLOURS[1]
    return Palette(_rgb((*USER_COLOURS, *OTHERS_COLOURS)), place[owner], meaning)


def _rgb(colours: Sequence[str]) -> NDArray[np.float64]:
    from matplotlib.colors import to_rgb

    return np.array([to_rgb(colour) for colour in colours])


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"
