// The Gantt charts, and from afar the shares in their place.

// The picture is made of bytes. A canvas in memory takes them faster than one on a graphics card,
// and far faster without any.
const IN_MEMORY = { willReadFrequently: true };
const FEW = 4000;  // pieces of which edges and numbers are drawn

/** Fit a canvas to its place on the page: its context, width, height, and pixels a CSS pixel. */
function fitted(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  return { g: canvas.getContext("2d", IN_MEMORY), width, height, ratio };
}

/** Where times and rows lie on a canvas of this size. */
function scaleOf(width, height) {
  const { t0, t1 } = S.view, { low, high } = S.rows;
  const sx = width / (t1 - t0), sy = height / (high - low);
  return { sx, sy, x: (time) => (time - t0) * sx, y: (row) => (row - low) * sy };
}

const between = document.createElement("canvas");

function drawGantt(k) {
  const run = S.runs[k], { g, width, height, ratio } = fitted($(`gantt${k}`));
  const { t0, t1 } = S.view, low = Math.floor(S.rows.low), high = Math.ceil(S.rows.high);
  const key = [width, height, t0, t1, S.rows.low, S.rows.high, S.stamp].join();
  if (run.shown === key) return;  // such as while a slider changes the other schedule
  run.shown = key;
  labelRun(k);
  g.fillStyle = S.background;
  g.fillRect(0, 0, width, height);
  if (isFar()) drawShares(k, g, width, height, ratio);
  else drawJobs(k, g, frameOf(t0, t1, low, high, width, height), scaleOf(width, height), ratio);
}

function drawJobs(k, g, frame, scale, ratio) {
  const run = S.runs[k], classes = S.palette.of[k];
  const { image, drawn } = rasterise(run.pieces, classes, S.palette, rgb(S.background), frame);
  Object.assign(between, { width: image.width, height: image.height });
  between.getContext("2d", IN_MEMORY).putImageData(image, 0, 0);
  g.imageSmoothingEnabled = false;
  g.drawImage(between, 0, scale.y(frame.low), frame.width, (frame.high - frame.low) * scale.sy);
  drawNodeLines(g, run, scale, frame.width, ratio);
  if (drawn < FEW) drawEdges(g, run, classes, scale, frame.width, ratio);
}

/** Lines between nodes, where they are high enough to be told apart. */
function drawNodeLines(g, run, scale, width, ratio) {
  if (!run.nodes || (run.rows / run.nodes.length) * scale.sy < 7 * ratio) return;
  g.fillStyle = S.dark ? "#59636b" : "#9aa3ab";
  for (const row of run.nodes) g.fillRect(0, scale.y(row) - ratio / 2, width, ratio / 2);
}

/** Edges of jobs and, where there is room, their numbers. */
function drawEdges(g, run, classes, scale, width, ratio) {
  const { pieces } = run;
  g.strokeStyle = S.background;
  g.lineWidth = ratio;
  g.font = `${10.5 * ratio}px system-ui, sans-serif`;
  g.textAlign = "center";
  g.textBaseline = "middle";
  eachVisible(pieces, S.view.t0, S.view.t1, S.rows.low, S.rows.high, (i) => {
    const x = scale.x(pieces.begin[i]), w = scale.x(pieces.stop[i]) - x;
    const y = scale.y(pieces.low[i]), h = scale.y(pieces.high[i]) - y;
    if (w > 3 * ratio && h > 3 * ratio) g.strokeRect(x, y, w, h);
    const text = String(S.jobs.number[pieces.job[i]]);
    const left = Math.max(x, 0), right = Math.min(x + w, width);
    if (h < 13 * ratio || right - left < (7 * text.length + 6) * ratio) return;
    g.fillStyle = readableOn(S.palette.rgb[classes[pieces.job[i]]]);
    g.fillText(text, (left + right) / 2, y + h / 2);
  });
}

/** Black or white, whichever is read better on a colour. */
const readableOn = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b > 115 ? "#111111" : "#ffffff");
