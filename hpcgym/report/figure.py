"""The figure that all pictures are drawn into; importing this imports matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

#: Fonts of PDF and PostScript are embedded as TrueType: many journals refuse Type 3, the default.
#: Names inside SVG are the same each time: by default they are random.
_SETTINGS = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.hashsalt": "hpcgym"}
_SETTLED = RLock()  # the settings are those of the process, and threads draw at once


class EmbeddingFigure(Figure):
    """A figure whose files have fonts that journals take, however it is saved."""

    def savefig(self, *args: Any, **options: Any) -> None:
        """Save as :meth:`matplotlib.figure.Figure.savefig` does, with these settings."""
        with _same_everywhere():
            super().savefig(*args, **options)


def empty_figure(width: float, height: float) -> EmbeddingFigure:
    """Return an empty figure of a size in inches."""
    figure = EmbeddingFigure(
        figsize=(width, height), dpi=150, layout="constrained", facecolor="white"
    )
    FigureCanvasAgg(figure)
    return figure


@contextmanager
def _same_everywhere() -> Iterator[None]:
    """Embed fonts and name things alike meanwhile; the user's own settings come back."""
    settings: Any = matplotlib.rcParams
    with _SETTLED:
        before = {name: settings[name] for name in _SETTINGS}
        settings.update(_SETTINGS)
        try:
            yield
        finally:
            settings.update(before)
