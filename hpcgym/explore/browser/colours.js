// Which colour each job has. All sets are told apart with any common kind of colour blindness.

// Okabe and Ito: those that have most of the machine; others are greys.
const NAMED_COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"];
const OTHERS = { light: ["#8C8C8C", "#A6A6A6", "#BFBFBF"], dark: ["#5B6167", "#6D747B", "#80878E"] };
// from little to much: lightness alone tells them apart
const RAMP = {
  light: ["#DFE4E8", "#FCD9A4", "#FDAF75", "#F0705C", "#C73A63", "#842681", "#3B0F70"],
  dark: ["#333A41", "#4A2C7A", "#7B2382", "#B63679", "#EE605E", "#FDAC73", "#FCF9BB"],
};
// from earlier to later in the second schedule
const DIVERGING = ["#08519C", "#4A98CC", "#A9D3EC", "#C8C8C8", "#FBBE86", "#E6752E", "#A63603"];
const DIFFERENCES = [
  "over 1 d earlier in the second", "over 1 h earlier", "earlier", "same start",
  "later", "over 1 h later", "over 1 d later",
];
const FAINT = { light: "#EDEFF1", dark: "#20262B" };  // jobs that a filter leaves out
const EDGES = {
  wait_time: [MINUTE, 10 * MINUTE, HOUR, 4 * HOUR, DAY, 3 * DAY],
  bsld: [1.01, 2, 5, 20, 100, 1000],
  requested_processors: [2, 4, 8, 16, 32, 64],
  difference: [-DAY, -HOUR, -0.5, 0.5, HOUR, DAY],
};

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
/** A colour as a pixel in memory has it: opaque, little-endian. */
const pixel = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

/**
 * Colours of all jobs.
 * Returns {table, of, legend}: colours; of each schedule which of them each job has, bytes; and
 * [colour, text, filter] of those that mean something.
 */
function paletteOf(jobs, runs, by, theme) {
  const faint = (of, run) => {
    if (run.matches) for (let j = 0; j < jobs.n; j++) if (!run.matches[j]) of[j] = 10;
    return of;
  };
  const { colours, legend, classes } = jobs.kinds[by]
    ? byName(jobs, by, theme)
    : byMeasure(jobs, runs, by, theme);
  const table = [...colours];
  table[10] = FAINT[theme];  // the classes before it are 10 at most
  for (let i = 0; i < 10; i++) table[i] = table[i] || FAINT[theme];
  const of = runs.map((run) => faint(classes(run), run));
  return { table, rgb: table.map(rgb), pixels: Uint32Array.from(table.map(rgb), pixel), of, legend };
}

function byName(jobs, by, theme) {
  const { names, of } = jobs.kinds[by], area = new Float64Array(names.length);
  for (let j = 0; j < jobs.n; j++) area[of[j]] += jobs.size[j] * jobs.ran[j];
  const all = area.reduce((a, b) => a + b, 0) || 1;
  const most = argsort(area.map((x) => -x)).slice(0, NAMED_COLOURS.length);
  const place = Uint8Array.from(names, (_, i) => 7 + (i % 3));
  most.forEach((name, i) => { place[name] = i; });
  const legend = [...most].map((name, i) => {
    const share = Math.round((100 * area[name]) / all);
    const wanted = `${by} ${quoted(names[name])}`;
    return [NAMED_COLOURS[i], `${names[name]} (${share || "<1"}%)`, wanted];
  });
  if (names.length > most.length) {
    legend.push([OTHERS[theme][1], plural(names.length - most.length, "other"), null]);
  }
  const classes = () => Uint8Array.from(of, (name) => place[name]);
  return { colours: [...NAMED_COLOURS, ...OTHERS[theme]], legend, classes };
}

function byMeasure(jobs, runs, by, theme) {
  const edges = EDGES[by], difference = by === "difference";
  const colours = difference ? DIVERGING : RAMP[theme];
  const classes = (run) => {
    const value = difference
      ? (j) => runs[1].start[j] - runs[0].start[j]
      : measureOf(jobs, run, by);
    return Uint8Array.from({ length: jobs.n }, (_, j) => upper(edges, value(j)));
  };
  const told = by === "wait_time" ? span : (x) => String(x);
  const texts = difference
    ? DIFFERENCES
    : colours.map((_, i) => (i ? `from ${told(edges[i - 1])}` : `below ${told(edges[0])}`));
  return { colours, legend: colours.map((colour, i) => [colour, texts[i], null]), classes };
}
