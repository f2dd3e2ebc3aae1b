"""Fonts in files of pictures are such as journals take, and the user's settings stay."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from hpcgym.report import draw_utilization, save_picture

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


def fonts_of(path):
    """Return the subtypes of all fonts of a PDF, found by its table of objects."""
    data = path.read_bytes()
    table = int(re.search(rb"startxref\s+(\d+)\s+%%EOF\s*$", data)[1])
    lines = data[table:].split(b"\n")
    assert lines[0].strip() == b"xref"
    first, number = map(int, lines[1].split())
    entries = [line.split() for line in lines[2 : 2 + number]]
    assert first == 0
    assert len(entries) == number > 5
    found = set()
    for place, (offset, _, kind) in enumerate(entries):
        if kind == b"n":
            text = data[int(offset) :]
            assert text.startswith(b"%d 0 obj" % place)
            entry = text[: text.index(b"endobj")].partition(b"stream")[0]
            if re.search(rb"/Type\s*/Font\b", entry):
                found.add(re.search(rb"/Subtype\s*/(\w+)", entry)[1].decode())
    return found


def test_the_way_of_looking_finds_type_3(tmp_path):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.suptitle("text")
    figure.savefig(tmp_path / "a.pdf")
    assert fonts_of(tmp_path / "a.pdf") == {"Type3"}


@pytest.mark.slow
def test_no_picture_has_fonts_of_type_3(schedule, tmp_path):
    results = {"a": schedule(), "b": schedule()}
    save_picture(results, tmp_path / "overview.pdf")
    draw_utilization(results).figure.savefig(tmp_path / "drawn.pdf")
    draw_utilization(results).figure.savefig(tmp_path / "drawn.eps")
    for name in ("overview.pdf", "drawn.pdf"):
        assert fonts_of(tmp_path / name) == {"Type0", "CIDFontType2"}  # TrueType, as Unicode
    kinds = re.findall(rb"/FontType\s+(\d+)", (tmp_path / "drawn.eps").read_bytes())
    assert {*kinds} == {b"42"}


@pytest.mark.slow
def test_settings_of_the_user_stay(schedule, tmp_path):
    import matplotlib

    results = schedule()
    with matplotlib.rc_context({"pdf.fonttype": 3, "ps.fonttype": 3}):
        before = dict(matplotlib.rcParams)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: save_picture(results, tmp_path / f"{n}.pdf"), range(8)))
        assert dict(matplotlib.rcParams) == before
        with pytest.raises(OSError, match="No such file"):
            draw_utilization(results).figure.savefig(tmp_path / "none" / "a.pdf")
        assert dict(matplotlib.rcParams) == before
    assert all(fonts_of(tmp_path / f"{n}.pdf") == {"Type0", "CIDFontType2"} for n in range(8))
    assert len({(tmp_path / f"{n}.pdf").read_bytes() for n in range(8)}) == 1
