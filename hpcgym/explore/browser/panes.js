// What lies below the Gantt charts: curves, the axis of time, and the map of the whole schedule.

const CURVES = {
  used: { title: "processors in use", top: () => Math.max(...S.runs.map((run) => run.processors)) },
  queue: { title: "queued jobs", top: null },
  power: { title: "power (W)", top: null },
};
/** Curves of each pane in view: the mean of each pixel, in a band from least to greatest. */
function curvesIn(name, width) {
  const { t0, t1 } = S.view, bands = [];
  S.runs.forEach((run, k) => { if (run[name]) bands.push([envelope(run[name], t0, t1, width), k]); });
  const most = bands.reduce((top, [band]) => band.high.reduce((a, b) => Math.max(a, b), top), 1);
  return { bands, top: CURVES[name].top ? CURVES[name].top() : most };
}

function drawCurves() {
  $("used").parentElement.hidden = isFar();  // it is what the shares add up to
  for (const name of Object.keys(CURVES)) {
    if ($(name).parentElement.hidden) continue;
    const { g, width, height, ratio } = fitted($(name));
    const { bands, top } = curvesIn(name, width);
    const y = yOf(top, height, ratio);
    g.fillStyle = S.background;
    g.fillRect(0, 0, width, height);
    for (const [band, k] of bands) drawBand(g, band, y, width, lineColour(k), ratio);
    drawLevels(g, roundLevels(top), y, width, ratio, counted);
    $(`label-${name}`).dataset.top = counted(Math.round(top));
    labelCurve(name);
  }
}

/** Where values lie on a pane, below its label. */
const yOf = (top, height, ratio) => (value) => height - 1 - (value / top) * (height - 24 * ratio);

/** Round values at the right edge, and thin lines through the pane. */
function drawLevels(g, levels, y, width, ratio, text) {
  g.font = `${10 * ratio}px system-ui, sans-serif`;
  g.textAlign = "right";
  g.textBaseline = "bottom";
  for (const level of levels) {
    g.fillStyle = S.dark ? "#ffffff22" : "#00000018";
    g.fillRect(0, Math.round(y(level)), width, ratio);
    g.strokeStyle = S.background;
    g.lineWidth = 3 * ratio;
    g.strokeText(text(level), width - 3 * ratio, y(level));
    g.fillStyle = softInk();
    g.fillText(text(level), width - 3 * ratio, y(level));
  }
}

function drawBand(g, { mean, low, high }, y, width, colour, ratio) {
  g.fillStyle = g.strokeStyle = colour;
  g.globalAlpha = 0.22;
  g.beginPath();
  for (let x = 0; x < width; x++) g.lineTo(x + 0.5, y(high[x]) - 0.5);
  for (let x = width - 1; x >= 0; x--) g.lineTo(x + 0.5, y(low[x]) + 0.5);
  g.fill();
  g.globalAlpha = 1;
  g.lineWidth = 1.3 * ratio;
  g.beginPath();
  for (let x = 0; x < width; x++) g.lineTo(x + 0.5, y(mean[x]));
  g.stroke();
}

/** What stands in a pane of curves: its title and, under the cursor, the values. */
function labelCurve(name, time = null) {
  const label = $(`label-${name}`), { title } = CURVES[name];
  const runs = S.runs.filter((run) => run[name]);
  const values = runs.map((run) => counted(Math.round(valueAt(run[name], time)))).join(" and ");
  label.textContent = time === null ? `${title}, to ${label.dataset.top}` : `${title}: ${values}`;
}

/** Ticks of the axis: [time, text]. */
function ticks(width, ratio) {
  const { t0, t1 } = S.view, step = stepOf(((t1 - t0) * 110 * ratio) / width);
  const inView = edgesOf(S.clock, step, t0, t1).filter((time) => time >= t0 && time <= t1);
  return inView.map((time) => [time, stepText(S.clock, step, time)]);
}

function drawAxis() {
  const { g, width, height, ratio } = fitted($("axis")), { x } = scaleOf(width, 1);
  g.clearRect(0, 0, width, height);
  g.fillStyle = softInk();
  g.font = `${11 * ratio}px system-ui, sans-serif`;
  g.textAlign = "center";
  g.textBaseline = "top";
  for (const [time, text] of ticks(width, ratio)) {
    g.fillRect(x(time) - ratio / 2, 0, ratio, 4 * ratio);
    const half = g.measureText(text).width / 2;
    if (x(time) >= half && x(time) <= width - half) g.fillText(text, x(time), 6 * ratio);
  }
}

const mapOf = document.createElement("canvas");  // of the whole schedule, without the view

function drawMap() {
  const { g, width, height, ratio } = fitted($("map"));
  const key = [width, height, S.dark, S.whole.t0, S.whole.t1].join();
  if (mapOf.key !== key || mapOf.run !== S.runs[0]) drawWhole(width, height, key);
  g.drawImage(mapOf, 0, 0);
  const x = (time) => ((time - S.whole.t0) / (S.whole.t1 - S.whole.t0)) * width;
  const left = x(S.view.t0), right = Math.max(x(S.view.t1), left + 2 * ratio);
  g.fillStyle = S.dark ? "rgba(0,0,0,.5)" : "rgba(255,255,255,.6)";
  g.fillRect(0, 0, left, height);
  g.fillRect(right, 0, width - right, height);
  g.strokeStyle = ink();
  g.lineWidth = 1.5 * ratio;
  g.strokeRect(left, 0.75 * ratio, right - left, height - 1.5 * ratio);
}

function drawWhole(width, height, key) {
  const run = S.runs[0];
  Object.assign(mapOf, { width, height, key, run });
  const g = mapOf.getContext("2d", IN_MEMORY);
  const { mean } = envelope(run.used, S.whole.t0, S.whole.t1, width);
  g.fillStyle = S.dark ? "#20272c" : "#f1f3f5";
  g.fillRect(0, 0, width, height);
  g.fillStyle = S.dark ? "#56789a" : "#9db8cf";
  for (let x = 0; x < width; x++) {
    const high = (mean[x] / run.processors) * height;
    g.fillRect(x, height - high, 1, high);
  }
}
