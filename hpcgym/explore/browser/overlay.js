// What lies over the Gantt charts: the job under the pointer, and the picked one with its story.

const DELAYED = "#D55E00", FREED = "#009E73";
const MOST_DRAWN = 400, MOST_ARROWS = 12;

/**
 * Who delayed a job, as far as it is known, [row, seconds] each; whose ends it started at; and who
 * else came later than it and started before it: what that alone tells is little.
 */
function storyOf(jobs, run, j) {
  const overtook = [], freed = [], from = jobs.submit[j], to = run.start[j];
  const delayed = run.why?.job === j ? run.why.delayed : [], known = new Set(delayed.map(([i]) => i));
  if (to <= from) return { delayed, overtook, freed };
  for (let i = j + 1; i < jobs.n && jobs.submit[i] < to; i++) {
    if (jobs.submit[i] > from && run.start[i] < to && !known.has(i)) overtook.push(i);
  }
  for (let i = 0; i < jobs.n; i++) {
    // where jobs share nodes, times are fractions, of which the last digits may differ
    if (Math.abs(run.end[i] - to) < 1e-3 && run.start[i] < to && i !== j) freed.push(i);
  }
  return { delayed, overtook, freed };
}

function drawOver() {
  S.runs.forEach((run, k) => {
    const { g, width, height, ratio } = fitted($(`over${k}`)), scale = scaleOf(width, height);
    g.clearRect(0, 0, width, height);
    const at = { g, width, height, ratio, scale, run };
    if (isFar()) { markPicked(at); return; }
    if (S.picked >= 0) drawStory(at, S.picked, S.palette.table[S.palette.of[k][S.picked]]);
    if (S.hover >= 0) outline(at, S.hover, ink(), 2);
  });
}

/** From afar: a line where the picked job started, and its number. */
function markPicked({ g, ratio, scale, run, width, height }) {
  const j = S.picked, x = j < 0 ? -1 : scale.x(run.start[j]);
  if (x < 0 || x > width) return;
  g.fillStyle = ink();
  g.fillRect(x - ratio, 0, 2 * ratio, height);
  const text = `job ${S.jobs.number[j]}`, right = x > width / 2;
  g.font = `${11 * ratio}px system-ui, sans-serif`;
  g.textAlign = right ? "right" : "left";
  g.textBaseline = "bottom";
  g.fillText(text, x + (right ? -5 : 5) * ratio, height - 3 * ratio);
}

/** The boxes of a job: [x, y, width, height]. */
function boxesOf({ run, scale, ratio }, j) {
  const { first, count, low, high } = run.pieces, boxes = [];
  const x = scale.x(run.start[j]), width = Math.max((run.end[j] - run.start[j]) * scale.sx, 2 * ratio);
  for (let i = first[j]; i < first[j] + count[j]; i++) {
    boxes.push([x, scale.y(low[i]), width, (high[i] - low[i]) * scale.sy]);
  }
  return boxes;
}

function outline(at, j, colour, width) {
  at.g.strokeStyle = colour;
  at.g.lineWidth = width * at.ratio;
  for (const box of boxesOf(at, j)) at.g.strokeRect(...box);
}

function fill(at, j, style) {
  at.g.fillStyle = style;
  for (const box of boxesOf(at, j)) at.g.fillRect(...box);
}

function middleOf({ run, scale }, j) {
  const i = run.pieces.first[j];
  return scale.y((run.pieces.low[i] + run.pieces.high[i]) / 2);
}

function drawStory(at, j, colour) {
  const { g, width, height, ratio, scale, run } = at, story = storyOf(S.jobs, run, j);
  g.fillStyle = S.dark ? "rgba(20,24,27,.62)" : "rgba(255,255,255,.62)";
  g.fillRect(0, 0, width, height);
  for (const other of story.overtook.slice(0, MOST_DRAWN)) outline(at, other, S.dark ? "#9aa3ab" : "#5f666c", 0.6);
  // who delayed it stays as bright as it was, with stripes, since each plain colour may be that of a user
  const stripes = stripesOf(g, ratio), rows = story.delayed.map(([other]) => other).slice(0, MOST_DRAWN);
  for (const other of rows) {
    for (const box of boxesOf(at, other)) g.clearRect(...box);
    fill(at, other, stripes);
  }
  fill(at, j, colour);
  outline(at, j, ink(), 2.5);
  drawWait(at, j);
  for (const other of story.freed.slice(0, MOST_ARROWS)) {
    outline(at, other, FREED, 2);
    const from = scale.x(run.end[other]) - 14 * ratio;
    drawArrow(at, from, middleOf(at, other), scale.x(run.start[j]), middleOf(at, j));
  }
  for (const other of rows) {
    outline(at, other, DELAYED, 2.5);
    writeNumber(at, other);
  }
}

/** The number of a job on its largest box in view, where there is room. */
function writeNumber(at, j) {
  const { g, ratio, width } = at, text = String(S.jobs.number[j]);
  const inView = ([x, y, w, h]) => [Math.max(x, 0), y, Math.min(x + w, width) - Math.max(x, 0), h];
  const [x, y, w, h] = boxesOf(at, j).map(inView).sort((a, b) => b[2] * b[3] - a[2] * a[3])[0];
  const wide = (7 * text.length + 4) * ratio, high = 13 * ratio;
  if (w < wide || h < high) return;
  g.fillStyle = S.background;
  g.fillRect(x + (w - wide) / 2, y + (h - high) / 2, wide, high);
  g.fillStyle = ink();
  g.font = `${10.5 * ratio}px system-ui, sans-serif`;
  g.textAlign = "center";
  g.textBaseline = "middle";
  g.fillText(text, x + w / 2, y + h / 2);
}

function stripesOf(g, ratio) {
  const size = Math.round(6 * ratio), tile = document.createElement("canvas");
  Object.assign(tile, { width: size, height: size });
  const t = tile.getContext("2d");
  t.strokeStyle = DELAYED;
  t.lineWidth = 1.8 * ratio;
  t.beginPath();
  for (const shift of [-size, 0, size]) { t.moveTo(shift, size); t.lineTo(shift + size, 0); }
  t.stroke();
  return g.createPattern(tile, "repeat");
}

/** A dashed line from the submission to the start. */
function drawWait(at, j) {
  const { g, ratio, scale, run } = at, y = middleOf(at, j), x = scale.x(S.jobs.submit[j]);
  g.strokeStyle = g.fillStyle = ink();
  g.lineWidth = 1.5 * ratio;
  g.setLineDash([5 * ratio, 4 * ratio]);
  g.beginPath();
  g.moveTo(x, y);
  g.lineTo(scale.x(run.start[j]), y);
  g.stroke();
  g.setLineDash([]);
  g.beginPath();
  g.arc(x, y, 4 * ratio, 0, 7);
  g.fill();
}

function drawArrow({ g, ratio }, x0, y0, x1, y1) {
  g.strokeStyle = g.fillStyle = FREED;
  g.lineWidth = 2 * ratio;
  g.beginPath();
  g.moveTo(x0, y0);
  g.bezierCurveTo(x0 + 30 * ratio, y0, x1 - 40 * ratio, y1, x1 - 5 * ratio, y1);
  g.stroke();
  g.beginPath();
  g.moveTo(x1, y1);
  g.lineTo(x1 - 9 * ratio, y1 - 5 * ratio);
  g.lineTo(x1 - 9 * ratio, y1 + 5 * ratio);
  g.fill();
}
