// From afar: where jobs would be lines too thin to be told apart, what share of the machine who has
// in hours, days, weeks or months, and how long jobs waited that were submitted in them.

const FAR_TIME = 5 * WEEK, FAR_PIECES = 2000;  // so long, and so many pieces in view, are seen from afar
const TOO_MANY = 20000;  // so many are in any case
const LEAST_BIN = 3;  // CSS pixels
const PERCENT = [0.25, 0.5, 0.75, 1];  // of the machine, at the right edge
const GROUPS = 9, OTHER_GROUPS = 7, LEFT_OUT = 8;  // seven colours, all other names, what the filter leaves out

/** Whether the view is drawn from afar. */
function isFar() {
  const { t0, t1 } = S.view, pieces = Math.max(...S.runs.map(({ pieces: { begin } }) => upper(begin, t1) - upper(begin, t0)));
  const wide = S.rows.low <= 0 && S.rows.high >= allRows();
  return wide && (pieces > TOO_MANY || (t1 - t0 > FAR_TIME && pieces > FAR_PIECES));
}

/** The step of the bins of a view. */
const farStep = (width) => stepOf(((S.view.t1 - S.view.t0) * LEAST_BIN) / width, PERIODS);

/** Processor seconds of each group in bins: bin after bin, GROUPS numbers each. */
function busyIn(edges, start, end, size, classes) {
  const bins = edges.length - 1, busy = new Float64Array(bins * GROUPS);
  for (let j = 0; j < start.length; j++) {
    const group = classes[j] > 9 ? LEFT_OUT : Math.min(classes[j], OTHER_GROUPS);
    for (let bin = Math.max(upper(edges, start[j]) - 1, 0); bin < bins && edges[bin] < end[j]; bin++) {
      busy[bin * GROUPS + group] += size[j] * Math.max(Math.min(end[j], edges[bin + 1]) - Math.max(start[j], edges[bin]), 0);
    }
  }
  return busy;
}

/** The median and the 90th percentile of the waits of the jobs submitted in each bin; 0 of no jobs. */
function waitsIn(edges, submit, start) {
  const bins = edges.length - 1, waits = Array.from({ length: bins }, () => []);
  for (let j = 0; j < submit.length; j++) {
    const bin = upper(edges, submit[j]) - 1;
    if (bin >= 0 && bin < bins) waits[bin].push(start[j] - submit[j]);
  }
  const median = new Float64Array(bins), high = new Float64Array(bins);
  waits.forEach((of, bin) => {
    const sorted = Float64Array.from(of).sort(), n = sorted.length;
    median[bin] = n ? sorted[Math.ceil(0.5 * n) - 1] : 0;
    high[bin] = n ? sorted[Math.ceil(0.9 * n) - 1] : 0;
  });
  return { median, high };
}

/** The whole schedule in bins, kept until the step or the colours change. */
function farOf(k, width) {
  const run = S.runs[k], step = farStep(width), key = [step.seconds, S.stamp, S.whole.t0, S.whole.t1].join();
  if (run.far?.key !== key) {
    const edges = edgesOf(S.clock, step, S.whole.t0, S.whole.t1);
    const busy = busyIn(edges, run.start, run.end, S.jobs.size, S.palette.of[k]);
    run.far = { key, step, edges, busy, ...waitsIn(edges, S.jobs.submit, run.start) };
  }
  return run.far;
}

/** Boxes [x, y, width, height, group] of the shares in view, on a picture of this size. */
function shareBoxes(k, { edges, busy }, width, height) {
  const { x } = scaleOf(width, 1), boxes = [], full = S.runs[k].processors;
  for (let bin = 0; bin + 1 < edges.length; bin++) {
    if (edges[bin + 1] <= S.view.t0 || edges[bin] >= S.view.t1) continue;
    const left = x(edges[bin]), wide = x(edges[bin + 1]) - left, whole = full * (edges[bin + 1] - edges[bin]);
    for (let group = 0, y = height; group < GROUPS; group++) {
      const high = (busy[bin * GROUPS + group] / whole) * height;
      y -= high;
      if (high > 0) boxes.push([left, y, wide, high, group]);
    }
  }
  return boxes;
}

const groupColour = (group) => S.palette.table[group === LEFT_OUT ? 10 : group === OTHER_GROUPS ? 8 : group];

function drawShares(k, g, width, height, ratio) {
  const far = farOf(k, width / ratio);
  for (const [left, y, wide, high, group] of shareBoxes(k, far, width, height)) {
    g.fillStyle = groupColour(group);
    g.fillRect(Math.round(left), y, Math.max(Math.round(left + wide) - Math.round(left) - (wide > 6 * ratio ? ratio : 0), 1), high);
  }
  drawLevels(g, PERCENT, (share) => (1 - share) * height, width, ratio, (share) => (share < 1 ? `${100 * share} %` : ""));
}

/** What stands over a schedule. */
function labelRun(k) {
  const { title } = S.runs[k], step = isFar() ? stepName(S.clock, farOf(k, $(`gantt${k}`).clientWidth).step) : "";
  $(`label${k}`).textContent = step ? `${title}: share of the machine by ${S.colour.replaceAll("_", " ")}, each ${step}` : title;
}

/** Who has most of the machine at a time: [text, share], the greatest first. */
function sharesAt(k, time) {
  const { edges, busy } = farOf(k, $(`gantt${k}`).clientWidth), bin = upper(edges, time) - 1;
  if (bin < 0 || bin + 1 >= edges.length) return [];
  const whole = S.runs[k].processors * (edges[bin + 1] - edges[bin]);
  const name = (group) => (group === LEFT_OUT ? "left out" : S.palette.legend[Math.min(group, S.palette.legend.length - 1)][1].replace(/ \(.*%\)$/, ""));
  const shares = Array.from({ length: GROUPS }, (_, group) => [name(group), busy[bin * GROUPS + group] / whole]);
  return shares.filter(([, share]) => share >= 0.005).sort((a, b) => b[1] - a[1]);
}

/** What the pane of waits shows of each schedule, and the greatest of it. */
function waitsShown(width) {
  const shown = S.runs.map((_, k) => farOf(k, width));
  const inView = ({ edges, high }) => high.filter((_, bin) => edges[bin + 1] > S.view.t0 && edges[bin] < S.view.t1);
  return { shown, top: shown.reduce((most, far) => inView(far).reduce((a, b) => Math.max(a, b), most), 60) };
}

function drawWaits() {
  const far = isFar(), pane = $("daily-waits").parentElement;
  if (pane.hidden === far) pane.hidden = !far;
  if (!far) return;
  const { g, width, height, ratio } = fitted($("daily-waits")), { x } = scaleOf(width, 1);
  const { shown, top } = waitsShown(width / ratio), y = yOf(top, height, ratio);
  g.fillStyle = S.background;
  g.fillRect(0, 0, width, height);
  shown.forEach(({ edges, median, high }, k) => {
    g.fillStyle = lineColour(k);
    median.forEach((value, bin) => {
      const left = x(edges[bin]), right = x(edges[bin + 1]);
      if (right <= 0 || left >= width || !high[bin]) return;
      g.globalAlpha = 0.25;
      g.fillRect(left, y(high[bin]), right - left, y(value) - y(high[bin]));
      g.globalAlpha = 1;
      g.fillRect(left, y(value) - ratio, right - left, 1.6 * ratio);
    });
  });
  drawLevels(g, roundLevels(top, true), y, width, ratio, span);
  $("label-daily-waits").textContent = `waits of the jobs submitted each ${stepName(S.clock, shown[0].step)}: median, up to the 90th percentile`;
}
