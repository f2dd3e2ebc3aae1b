// What the page shows now. Only the functions of view.js and live.js change it.

const S = {
  head: null,  // what Python told; see explore/page.py
  jobs: null,  // what all schedules share
  columns: null,
  places: [],  // of the schedules that are shown, among those that Python told
  runs: [],  // one or two schedules, which are shown
  clock: null,
  whole: { t0: 0, t1: 1 },  // seconds since the first submission
  view: { t0: 0, t1: 1 },
  rows: { low: 0, high: 1 },  // rows in view, from low up to high
  colour: "user",
  palette: null,
  stamp: 0,  // counts palettes, so that a picture knows whether its colours are the present ones
  filter: "",  // as it was typed
  terms: [],  // of it
  hover: -1,  // row of the job under the pointer, -1: none
  picked: -1,
  now: null,  // the moment of forecasts [s]; null: none is chosen
  fans: null,  // what was expected then; see fans.js
  dark: false,
  background: "#ffffff",
};

const $ = (id) => document.getElementById(id);
const theme = () => (S.dark ? "dark" : "light");
const softInk = () => (S.dark ? "#b8bfc5" : "#444444");
const ink = () => (S.dark ? "#ffffff" : "#000000");
const lineColour = (k) => (S.dark ? ["#56B4E9", "#FF9D5C"] : ["#0072B2", "#D55E00"])[k];

/** A schedule to be drawn, of what Python told of it. */
function scheduleOf(told, columns, jobs) {
  const column = (name) => columns[told.columns[name]];
  const wait = column("wait"), ran = column("run") || jobs.ran, n = jobs.n;
  const start = new Float64Array(n), end = new Float64Array(n);
  for (let j = 0; j < n; j++) {
    start[j] = jobs.submit[j] + wait[j];
    end[j] = start[j] + ran[j];
  }
  const byStart = argsort(start);
  const pieces = column("pieces")
    ? orderPieces(start, column("pieces"), column("low"), column("width"))
    : placeOnPool(start, end, jobs.size, told.rows, byStart);
  const nodes = column("nodes");
  return {
    name: told.name,
    title: told.name,  // over its picture
    rules: told.rules,
    rows: told.rows,
    row: told.row,
    processors: told.processors,
    start,
    end,
    full: column("full"),
    counted: column("counted"),
    pieces: timed(pieces, start, end),
    nodes: nodes ? cumulated(nodes, 0) : null,  // one after the last row of each
    nodeNames: told.nodes,
    used: stacked(start, end, jobs.size, byStart),
    queue: stacked(jobs.submit, start, null, undefined, byStart),
    power: column("power") ? curveOf(cumulated(column("power_gap"), 0), column("power")) : null,
    matches: null,
    why: null,  // why the picked job waited: {job, delayed, title, told}
  };
}

/** From the beginning of all schedules to their last end. */
function extent(runs) {
  const last = runs.reduce((most, run) => run.pieces.latest.reduce((a, b) => Math.max(a, b), most), 1);
  return { t0: S.head.begin, t1: last };
}

/** The row of a job by its number in the log, of several runs of it the last; -1: none. */
const byNumber = (number) => S.jobs.number.lastIndexOf(number);
