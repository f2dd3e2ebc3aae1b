// Mouse, pen and fingers: zoom at the pointer, drag, choose a time, hover, click.

const CLICK = 4;  // pixels that a click may move
const fingers = new Map();  // pointers that are down on a pane: id -> {x, y}
let drag = null;

const inPane = (pane, x) => { const box = pane.getBoundingClientRect(); return (x - box.x) / box.width; };
const timeAt = (pane, x) => S.view.t0 + inPane(pane, x) * (S.view.t1 - S.view.t0);

/** The job under the pointer, or nearest to it within two pixels of time; -1: none. */
function jobAt(k, clientX, clientY) {
  const canvas = $(`gantt${k}`), box = canvas.getBoundingClientRect(), { pieces } = S.runs[k];
  const time = timeAt(canvas, clientX), { low, high } = S.rows;
  const row = Math.floor(low + ((clientY - box.y) / box.height) * (high - low));
  const slack = (2 * (S.view.t1 - S.view.t0)) / box.width;
  let best = -1, off = slack;
  eachVisible(pieces, time - slack, time + slack, row, row + 1, (i) => {
    const away = Math.max(pieces.begin[i] - time, time - pieces.stop[i], 0);
    if (best < 0 || away < off) { best = pieces.job[i]; off = away; }
  });
  return best;
}

/** The job under the pointer in a Gantt chart, k, or among the fans. */
function jobUnder(pane, k, event) {
  if (pane.id === "fans-pane") return fanAt(event.clientY);
  if (isFar()) return -1;
  return k === null ? -1 : jobAt(k, event.clientX, event.clientY);
}

function onWheel(event, pane) {
  event.preventDefault();
  const at = inPane(pane, event.clientX), factor = Math.exp(event.deltaY * 0.002);
  const box = pane.getBoundingClientRect();
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (event.altKey && pane.classList.contains("gantt")) zoomRows(factor, (event.clientY - box.y) / box.height);
  else if (sideways) move((event.deltaX || event.deltaY) / box.width);
  else zoom(factor, at);
}

function onDown(event, pane) {
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  pane.setPointerCapture(event.pointerId);
  drag = { x: event.clientX, y: event.clientY, view: S.view, rows: S.rows, moved: false, brush: event.shiftKey };
}

function onMove(event, pane) {
  if (fingers.size === 2 && fingers.has(event.pointerId)) { pinch(event, pane); return; }
  if (!drag) { hover(event, pane); return; }
  if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < CLICK && !drag.moved) return;
  drag.moved = true;
  hideHover();
  if (drag.brush) showBrush(event.clientX);
  else dragTo(event, pane);
}

function dragTo(event, pane) {
  const box = pane.getBoundingClientRect(), { view, rows } = drag;
  const by = ((drag.x - event.clientX) / box.width) * (view.t1 - view.t0);
  const up = ((drag.y - event.clientY) / box.height) * (rows.high - rows.low);
  if (pane.classList.contains("gantt")) showRows(rows.low + up, rows.high + up);
  showTime(view.t0 + by, view.t1 + by);
}

/** Two fingers: what lies between them stays there. */
function pinch(event, pane) {
  const [a, b] = [...fingers.values()], before = Math.abs(a.x - b.x);
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  const [c, d] = [...fingers.values()], after = Math.abs(c.x - d.x);
  if (drag) drag.moved = true;
  if (before > 8 && after > 8) zoom(before / after, inPane(pane, (c.x + d.x) / 2));
}

function showBrush(x) {
  const left = $("stage").getBoundingClientRect().x;
  Object.assign($("brush").style, {
    display: "block", left: `${Math.min(x, drag.x) - left}px`, width: `${Math.abs(x - drag.x)}px`,
  });
}

function onUp(event, pane, k) {
  fingers.delete(event.pointerId);
  const done = drag;
  if (fingers.size) {  // the finger that is left drags from here, not from before the pinch
    const [left] = fingers.values();
    drag = { ...left, view: S.view, rows: S.rows, moved: true, brush: false };
    return;
  }
  drag = null;
  if (!done) return;
  if (done.brush && done.moved) {
    $("brush").style.display = "none";
    const [from, to] = [done.x, event.clientX].sort((a, b) => a - b);
    showTime(timeAt(pane, from), timeAt(pane, to));
  } else if (!done.moved && k !== null && isFar()) {
    const time = timeAt(pane, event.clientX);
    hideHover();  // what it says is of the year
    showTime(time - WEEK / 2, time + WEEK / 2);
  } else if (!done.moved && (k !== null || pane.id === "fans-pane")) pick(jobUnder(pane, k, event));
}

function onCancel(event) {
  fingers.delete(event.pointerId);
  drag = null;
  $("brush").style.display = "none";
}

/** The cursor through all panes, what they have there, and the job under the pointer. */
function hover(event, pane) {
  const k = pane.classList.contains("gantt") ? Number(pane.dataset.run) : null;
  const time = timeAt(pane, event.clientX), j = jobUnder(pane, k, event);
  const left = $("stage").getBoundingClientRect().x;
  Object.assign($("cursor").style, { display: "block", transform: `translateX(${event.clientX - left}px)` });
  for (const name of Object.keys(CURVES)) labelCurve(name, time);
  if (j !== S.hover) { S.hover = j; drawOver(); }
  showTip(event, time, j, k);
}

function showTip(event, time, j, k) {
  const { jobs, clock } = S, lines = [];
  if (j >= 0) {
    const run = S.runs[k ?? 0], user = jobs.kinds.user;
    const who = user ? `${user.names[user.of[j]]}, ` : "";
    lines.push(element("b", {}, `job ${jobs.number[j]}`), `${who}${plural(jobs.size[j], "processor")}`);
    lines.push(`waited ${span(run.start[j] - jobs.submit[j])}, ran ${span(run.end[j] - run.start[j])}`);
    if (k === null) lines.push(expectedOf(j));
  }
  const far = k !== null && isFar(), node = far ? "" : nodeAt(event, k);
  if (far) {
    for (const [name, share] of sharesAt(k, time).slice(0, 4)) lines.push(`${name}: ${(100 * share).toFixed(1)} % of the machine`);
    lines.push(element("span", { className: "soft" }, "click: a week of jobs"));
  }
  lines.push(element("span", { className: "soft" }, `${clock.seconds(time)}${node}`));
  const tip = $("tip");
  tip.replaceChildren(...lines.map((line) => element("div", {}, line)));
  tip.style.display = "block";
  // on the other side of the pointer where it would leave the picture
  const stage = $("stage").getBoundingClientRect(), { width, height } = tip.getBoundingClientRect();
  const x = event.clientX + 14 + width > stage.right ? event.clientX - 14 - width : event.clientX + 14;
  const y = event.clientY + 14 + height > innerHeight ? event.clientY - 14 - height : event.clientY + 14;
  tip.style.transform = `translate(${Math.max(x, 2)}px,${Math.max(y, 2)}px)`;
}

function nodeAt(event, k) {
  if (k === null || !S.runs[k].nodes) return "";
  const box = $(`gantt${k}`).getBoundingClientRect(), { low, high } = S.rows;
  const row = low + ((event.clientY - box.y) / box.height) * (high - low);
  const name = S.runs[k].nodeNames[upper(S.runs[k].nodes, row)];
  return name === undefined ? "" : `, node ${name}`;
}

function hideHover() {
  $("tip").style.display = $("cursor").style.display = "none";
  for (const name of Object.keys(CURVES)) labelCurve(name);
  if (S.hover >= 0) { S.hover = -1; drawOver(); }
}

function listenToPane(pane) {
  const k = pane.classList.contains("gantt") ? Number(pane.dataset.run) : null;
  pane.addEventListener("wheel", (event) => onWheel(event, pane), { passive: false });
  pane.addEventListener("pointerdown", (event) => onDown(event, pane));
  pane.addEventListener("pointermove", (event) => onMove(event, pane));
  pane.addEventListener("pointerup", (event) => onUp(event, pane, k));
  pane.addEventListener("pointercancel", onCancel);
  pane.addEventListener("pointerleave", hideHover);
  pane.addEventListener("dblclick", showWhole);
}

/** The map: the view goes where it is pressed; what is dragged beside it is chosen. */
function listenToMap() {
  const map = $("map");
  let from = null, inside = false;
  const time = (event) => S.whole.t0 + inPane(map, event.clientX) * (S.whole.t1 - S.whole.t0);
  const centre = (event) => {
    const half = (S.view.t1 - S.view.t0) / 2;
    showTime(time(event) - half, time(event) + half);
  };
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    from = time(event);
    inside = from >= S.view.t0 && from <= S.view.t1 && S.view.t1 - S.view.t0 < 0.99 * (S.whole.t1 - S.whole.t0);
    if (inside) centre(event);
  });
  map.addEventListener("pointermove", (event) => {
    if (from === null) return;
    if (inside) centre(event);
    else showTime(...[from, time(event)].sort((a, b) => a - b));
  });
  map.addEventListener("pointerup", (event) => {
    if (from !== null && !inside && Math.abs(time(event) - from) < (S.whole.t1 - S.whole.t0) / 500) centre(event);
    from = null;
  });
  map.addEventListener("pointercancel", () => { from = null; });
}
