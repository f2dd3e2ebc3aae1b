// The selected range, which is the time in view: what it comes to, who has what of it, histograms.

const MOST_GROUPS = 20;
const ranking = { by: "share (%)", down: true };
const long = (seconds) => (Number.isNaN(seconds) ? "-" : span(seconds));
const rounded = (digits) => (x) => (Number.isNaN(x) ? "-" : (Number(x.toFixed(digits)) + 0).toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits }));
// title -> [name of a measure, how it is shown]; BSLD is the bounded slowdown
const SELECTED = {
  "core-hours": ["core_hours", rounded(0)],
  "utilization (%)": ["utilization", (x) => rounded(1)(100 * x)],
  "mean wait": ["mean_wait", long],
  "median wait": ["median_wait", long],
  "P95 of waits": ["p95_wait", long],
  "longest wait": ["max_wait", long],
  "mean BSLD": ["mean_bsld", rounded(2)],
  "longest queue": ["max_queue", rounded(0)],
};
const HISTOGRAMS = {
  waits: {
    title: "Waits of jobs that waited", most: "max_wait", least: 0, perDecade: 4,
    ticks: [[1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [HOUR, "1 h"], [10 * HOUR, "10 h"], [4 * DAY, "4 d"], [40 * DAY, "40 d"]],
  },
  slowdowns: {
    title: "Bounded slowdowns above 1", most: "max_bsld", least: 1, perDecade: 8,
    ticks: [0, 1, 2, 3, 4, 5, 6].map((power) => [10 ** power, counted(10 ** power)]),
  },
};

let showing = 0;  // counts what was asked for: what is no longer wanted is left

/**
 * Show all of the selected range; while it is closed, only how many jobs it has. Of 200,000 jobs
 * this takes a fifth of a second: between its parts the page does what else is asked.
 */
async function showSelection() {
  const { jobs, runs, clock, whole, view } = S;
  const t0 = Math.max(view.t0, whole.t0), t1 = Math.max(t0, Math.min(view.t1, whole.t1));
  const rows = selectedJobs(jobs, runs, t0, t1), many = plural(rows.length, S.head.what);
  $("selected-jobs").textContent = `: ${many}`;
  if (!$("selected").open) return;
  const mine = ++showing, left = S.terms.length ? ", which the filter leaves in" : "";
  $("selected-about").textContent = `${many} submitted from ${clock.minutes(t0)} to ${clock.minutes(t1)}${left}. Utilization and queue are of all jobs in this time.`;
  const measured = [];
  const parts = [
    ...runs.map((run) => () => measured.push(measuresOf(jobs, run, rows, t0, t1))),
    () => showMeasures(measured), () => showGroups(rows, measured),
    ...Object.keys(HISTOGRAMS).map((name) => () => drawHistogram(name, measured)),
  ];
  for (const part of parts) {
    await new Promise((resolve) => { setTimeout(resolve); });
    if (mine !== showing) return;
    part();
  }
  S.selected = { t0, t1, measured };
}

function showMeasures(measured) {
  const head = (scope, ...inside) => element("th", { scope }, ...inside), two = measured.length > 1;
  const line = ([title, [name, shown]]) => {
    const values = measured.map((one) => one[name]), by = values[1] - values[0];
    const text = shown(by) === shown(0) ? "same" : `${by > 0 ? "+" : ""}${shown(by)}`;
    const cells = [...values.map(shown), ...(two ? [text] : [])];
    return element("tr", { dataset: { measure: name } }, head("row", title), ...cells.map((cell) => element("td", {}, cell)));
  };
  const tops = [...S.runs.map((run) => head("col", scheduleName(run.name))), ...(two ? [head("col", "difference")] : [])];
  const top = element("thead", {}, element("tr", {}, element("td"), ...tops));
  $("measures").replaceChildren(top, element("tbody", {}, ...Object.entries(SELECTED).map(line)));
}

/** A table of users, or of what else the colours tell. */
function showGroups(rows, measured) {
  const { kinds } = S.jobs, kind = kinds[S.colour] ? S.colour : Object.keys(kinds)[0];
  $("groups").parentElement.hidden = !kind;
  if (!kind) return;
  const { names, of } = kinds[kind], groups = groupsOf(rows, of, names.length, measured, MOST_GROUPS);
  const only = (place) => element("button", { className: "job", onclick: () => setFilter(`${kind} ${quoted(names[place])}`) }, names[place]);
  const columns = {
    [kind]: [({ place }) => place, ({ place, groups }) => (place < 0 ? plural(groups, "other") : only(place))],
    jobs: [(one) => one.jobs, (one) => counted(one.jobs)],
    "share (%)": [(one) => one.share, (one) => rounded(1)(100 * one.share)],
  };
  const each = (title, name, shown) => S.runs.forEach((run, k) => {
    columns[S.runs.length > 1 ? `${title}, ${run.name}` : title] = [(one) => one[name][k], (one) => shown(one[name][k])];
  });
  each("mean wait", "waits", span);
  each("mean BSLD", "slowdowns", rounded(1));
  const last = groups.filter(({ place }) => place < 0);
  fillSorted($("groups"), columns, groups.filter(({ place }) => place >= 0), ranking, showSelection, last);
}

function drawHistogram(name, measured) {
  const { title, most, least, perDecade, ticks } = HISTOGRAMS[name], { g, width, height, ratio } = fitted($(name));
  const edges = logarithmicEdges(Math.max(...measured.map((one) => one[most])), perDecade);
  const found = measured.map((one) => histogram(one[name], least, edges));
  const top = Math.max(...found.map(({ bins }) => Math.max(...bins))) || 1, floor = height - 18 * ratio;
  const x = (i) => (i / (edges.length - 1)) * width, y = (share) => floor - (share / top) * (floor - 15 * ratio);
  g.fillStyle = S.background;
  g.fillRect(0, 0, width, height);
  found.forEach(({ bins }, k) => {
    g.fillStyle = g.strokeStyle = lineColour(k);
    g.lineWidth = 1.3 * ratio;
    g.beginPath();
    g.moveTo(0, floor);
    bins.forEach((share, i) => { g.lineTo(x(i), y(share)); g.lineTo(x(i + 1), y(share)); });
    g.lineTo(width, floor);
    g.stroke();
    g.globalAlpha = 0.22;
    g.fill();
    g.globalAlpha = 1;
  });
  g.fillStyle = S.dark ? "#b8bfc5" : "#444444";
  g.font = `${11 * ratio}px system-ui, sans-serif`;
  g.textBaseline = "top";
  for (const [value, text] of ticks) {
    const at = x(Math.log10(value) * perDecade), wide = g.measureText(text).width;
    if (at + wide > width) break;
    g.fillRect(at, floor, ratio, 4 * ratio);
    g.fillText(text, Math.max(at - wide / 2, 0), floor + 5 * ratio);
  }
  g.textAlign = "right";
  g.fillText(`highest bar: ${rounded(1)(100 * top)} %`, width, 0);
  g.textAlign = "left";
  const said = found.map(({ above }) => `${rounded(0)(100 * above)} %`).join(" and ");
  $(`${name}-title`).textContent = `${title}: ${said}`;
}
