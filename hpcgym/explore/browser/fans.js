// What was expected at a moment, "now": fans of the starts of the jobs that waited, and what happened.

const FAN_ROW = 5, FAN_TOP = 22;  // the least height of a row, and that of the title [CSS pixels]
const MEDIAN = 3;  // place of it among the levels that Python tells
const INTERVALS = [[0, 6, 0.2], [1, 5, 0.4], [2, 4, 0.75]];  // 95, 80 and 50 %: levels, opacity

/** What Python tells of a moment (explore/fans.py), in the order of medians; never is Infinity. */
function fansOf({ now, jobs }, rowOf) {
  const rows = jobs.map(([number, levels, on, share]) => ({
    j: rowOf(number), levels: levels.map((time) => time ?? Infinity), on, share,
  }));
  rows.sort((a, b) => a.levels[MEDIAN] - b.levels[MEDIAN] || a.j - b.j);
  return { now, rows };
}

/** The rows that there is room for, the first ones and that of the picked job; and how high each is. */
function roomOfFans({ rows }, picked, height, ratio) {
  const free = Math.max(height - (FAN_TOP + 4) * ratio, 0), most = Math.max(Math.floor(free / (FAN_ROW * ratio)), 1);
  const shown = rows.slice(0, most), its = rows.findIndex(({ j }) => j === picked);
  if (its >= most) shown[most - 1] = rows[its];
  return { shown, each: Math.min(free / Math.max(shown.length, 1), 14 * ratio) };
}

/**
 * Shapes of the rows of roomOfFans: boxes [x, y, width, height, opacity] of intervals, medians [x, y, height], and
 * what happened, dots [x, y, radius]; x(time) tells where a time lies.
 */
function fanShapes({ shown, each }, start, x, width, ratio) {
  const shapes = { boxes: [], medians: [], dots: [] };
  const at = (time) => Math.min(x(time), width + 9 * ratio);
  shown.forEach(({ j, levels }, i) => {
    const top = FAN_TOP * ratio + i * each, high = Math.max(each - ratio, ratio);
    for (const [from, to, opacity] of INTERVALS) {
      const left = at(levels[from]);
      shapes.boxes.push([left, top, Math.max(at(levels[to]) - left, ratio), high, opacity]);
    }
    shapes.medians.push([at(levels[MEDIAN]), top, high]);
    shapes.dots.push([at(start[j]), top + high / 2, Math.max(Math.min(high / 2, 3.5 * ratio), 1.6 * ratio)]);
  });
  return shapes;
}

/** The fans that are shown: those of the first schedule that Python told, while it is above. */
const fansShown = () => (S.places[0] === 0 ? S.fans : null);

function drawFans() {
  const fans = fansShown();
  if ($("fans-pane").hidden !== !fans) $("fans-pane").hidden = !fans;
  document.body.classList.toggle("now", Boolean(fans));
  placeNow();
  if (!fans) return;
  const { g, width, height, ratio } = fitted($("fans")), { x } = scaleOf(width, 1);
  const room = roomOfFans(fans, S.picked, height, ratio);
  const { boxes, medians, dots } = fanShapes(room, S.runs[0].start, x, width, ratio);
  g.fillStyle = S.background;
  g.fillRect(0, 0, width, height);
  g.fillStyle = lineColour(0);
  for (const [left, top, wide, high, opacity] of boxes) {
    g.globalAlpha = opacity;
    g.fillRect(left, top, wide, high);
  }
  g.globalAlpha = 1;
  g.fillStyle = S.background;
  for (const [left, top, high] of medians) g.fillRect(left - ratio / 2, top, ratio, high);
  for (const [left, middle, radius] of dots) {
    g.fillStyle = S.background;
    g.beginPath();
    g.arc(left, middle, radius + ratio, 0, 7);
    g.fill();
    g.fillStyle = lineColour(1);
    g.beginPath();
    g.arc(left, middle, radius, 0, 7);
    g.fill();
  }
  const i = room.shown.findIndex(({ j }) => j === S.picked);
  if (i >= 0) {
    const [left, top, wide, high] = boxes[3 * i];
    g.strokeStyle = ink();
    g.lineWidth = 1.5 * ratio;
    g.strokeRect(left - 2 * ratio, top - ratio, wide + 4 * ratio, high + 2 * ratio);
  }
  const some = dots.length < fans.rows.length ? `${dots.length} of ` : "";
  const waiting = `${some}${plural(fans.rows.length, "waiting job")}`;
  $("label-fans").textContent = `${waiting}: 50, 80, 95 %; dots: what happened. Now: ${S.clock.minutes(fans.now)}`;
}

/** The line through all panes, and the slider below them, whose ends are those of the view. */
function placeNow() {
  const { t0, t1 } = S.view, slider = $("now"), now = S.now;
  Object.assign(slider, { min: Math.floor(t0), max: Math.ceil(t1) });
  slider.value = now ?? t1;
  const inView = now !== null && now >= t0 && now <= t1 && S.places[0] === 0;
  $("now-line").style.display = inView ? "block" : "none";
  if (!inView) return;
  const canvas = $("gantt0");
  const left = canvas.getBoundingClientRect().x - $("stage").getBoundingClientRect().x;
  $("now-line").style.transform = `translateX(${left + ((now - t0) / (t1 - t0)) * canvas.clientWidth}px)`;
}

/** The job whose fan is under the pointer; -1: none. */
function fanAt(clientY) {
  const fans = fansShown(), box = $("fans").getBoundingClientRect();
  if (!fans) return -1;
  const { shown, each } = roomOfFans(fans, S.picked, box.height, 1);
  return shown[Math.floor((clientY - box.y - FAN_TOP) / each)]?.j ?? -1;
}

/** What was expected of a job, in words; "": it did not wait then. */
function expectedOf(j) {
  const fans = fansShown(), row = fans?.rows.find((each) => each.j === j);
  if (!row) return "";
  const after = (time) => (time === Infinity ? "never" : span(Math.max(time - fans.now, 0)));
  const { levels } = row;
  return `expected in ${after(levels[MEDIAN])}, 80 %: in ${after(levels[1])} to ${after(levels[5])}; it was in ${after(S.runs[0].start[j])}`;
}

/** The facts of a job that waited: what was expected, and on what that depended most. */
function expectedFacts(j) {
  const text = expectedOf(j);
  if (!text) return [];
  const { now, rows } = fansShown(), { on, share } = rows.find((row) => row.j === j);
  const words = on === null
    ? ["Its start depended on no running job alone."]
    : ["Its start depended most on job ", jobButton(byNumber(on)), `, which usually ends at ${Math.round(100 * share)} % of its request.`];
  const said = element("p", {}, `${text[0].toUpperCase()}${text.slice(1)}.`);
  return [element("section", { id: "expected" }, element("h3", {}, `By ${S.clock.minutes(now)}`), said, element("p", {}, ...words))];
}

function takeFans(told) {
  S.fans = fansOf(told, byNumber);
  S.now = S.fans.now;
  showFacts();
  draw();
}
