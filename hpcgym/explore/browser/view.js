// What changes the view, and what follows from it: drawing, the table, the address of the page.

const SHORTEST = 10;  // seconds in view at least
let asked = 0, settling = 0;

/** Draw at the next frame, however often it is asked for. */
function draw() {
  if (asked) return;
  asked = requestAnimationFrame(() => {
    asked = 0;
    S.runs.forEach((_, k) => drawGantt(k));
    drawCurves();
    drawWaits();
    drawAxis();
    drawMap();
    drawFans();
    drawOver();
  });
  clearTimeout(settling);
  settling = setTimeout(() => { remember(); showSelection(); showTable(); }, 150);
}

/** Show a time, not much more than the whole schedule. */
function showTime(t0, t1) {
  const { whole } = S, margin = (whole.t1 - whole.t0) * 0.01;
  const earliest = whole.t0 - (S.head.begin ? 0 : margin);  // what was before an extract is not known
  const width = Math.min(Math.max(t1 - t0, SHORTEST), whole.t1 + margin - earliest);
  const from = Math.min(Math.max(t0, earliest), whole.t1 + margin - width);
  S.view = { t0: from, t1: from + width };
  draw();
}

/** Zoom by a factor around a place, 0 to 1 from left to right. */
function zoom(factor, at = 0.5) {
  const { t0, t1 } = S.view, width = t1 - t0, middle = t0 + width * at;
  const most = (S.whole.t1 - S.whole.t0) * 1.02, next = Math.min(Math.max(width * factor, SHORTEST), most);
  showTime(middle - next * at, middle + next * (1 - at));
}

function move(share) {
  const width = S.view.t1 - S.view.t0;
  showTime(S.view.t0 + share * width, S.view.t1 + share * width);
}

const allRows = () => Math.max(...S.runs.map((run) => run.rows));

/** Show some rows, four at least. */
function showRows(low, high) {
  const all = allRows(), count = Math.min(Math.max(high - low, Math.min(4, all)), all);
  const from = Math.min(Math.max(low, 0), all - count);
  S.rows = { low: from, high: from + count };
  draw();
}

function zoomRows(factor, at = 0.5) {
  const { low, high } = S.rows, middle = low + (high - low) * at, next = (high - low) * factor;
  showRows(middle - next * at, middle + next * (1 - at));
}

function showWhole() {
  showRows(0, allRows());
  showTime(S.whole.t0, S.whole.t1);
}

/** Pick a job, -1: none; centre: zoom to its wait and its run. */
function pick(j, centre = false) {
  S.picked = j;
  if (centre && j >= 0) {
    const from = S.jobs.submit[j], to = Math.max(...S.runs.map((run) => run.end[j]));
    const margin = (to - from) * 0.35 + 300;
    showRows(0, allRows());
    showTime(from - margin, to + margin);
  }
  showFacts();
  $("detail").scrollTop = 0;
  // on a narrow page facts lie over its lower half: the picture goes to the upper one
  if (j >= 0 && matchMedia("(max-width: 760px)").matches) $("stage").scrollIntoView();
  if (j >= 0) whenPicked(j);
  draw();
}

/** Colours, after what they tell has changed. */
function recolour() {
  for (const run of S.runs) run.matches = matching(S.jobs, run, S.terms);
  S.palette = paletteOf(S.jobs, S.runs, S.colour, theme());
  S.stamp++;
  showLegend();
  draw();
}

/** Leave out jobs that do not meet a filter; "" leaves none out. Errors are said beside the field. */
function setFilter(text) {
  $("find").value = text;
  $("wrong").textContent = "";
  const before = S.terms;
  try {
    S.terms = parseFilter(text);
    recolour();
    S.filter = text;
  } catch (error) {
    S.terms = before;
    $("wrong").textContent = error.message;
  }
}

/** Follow what stands in the field: a number picks a job, all else is a filter. */
function find(text) {
  const number = /^\s*(?:job\s*)?#?(\d+)\s*$/i.exec(text);
  if (!number) { setFilter(text); return; }
  const j = byNumber(Number(number[1]));
  $("wrong").textContent = j < 0 ? `there is no job ${number[1]} here` : "";
  if (j >= 0) pick(j, true);
}

/** Pick the next job, or the one before, of the filter, or else of the same user. */
function pickNext(by) {
  const user = S.jobs.kinds.user, { matches } = S.runs[0];
  for (let j = S.picked + by; j >= 0 && j < S.jobs.n; j += by) {
    const same = matches ? matches[j] : !user || S.picked < 0 || user.of[j] === user.of[S.picked];
    if (same) { pick(j, true); return; }
  }
}

/** Light or dark; null: as the reader's system has it. */
function setTheme(dark) {
  S.dark = applyTheme(dark);
  S.background = S.dark ? "#14181b" : "#ffffff";
}

/** Write the view into the address, so that it can be passed on. */
function remember() {
  const { t0, t1 } = S.view, { low, high } = S.rows;
  const pair = (a, b, decimals) => `${a.toFixed(decimals)}_${b.toFixed(decimals)}`;
  const query = new URLSearchParams({ t: pair(t0, t1, 0), colour: S.colour });
  if (schedules.length > 2) query.set("schedules", S.places.join("_"));
  if (low > 0 || high < allRows()) query.set("rows", pair(low, high, 1));
  if (S.picked >= 0) query.set("job", S.jobs.number[S.picked]);
  if (S.terms.length) query.set("filter", S.filter);
  const hash = `#${query}`;
  try {
    if (location.hash !== hash) history.replaceState(null, "", hash);
  } catch { /* a page inside of another has no address of its own */ }
}

/** Show what an address tells. */
function recall() {
  const query = new URLSearchParams(location.hash.slice(1));
  const pair = (name) => /^(-?\d+(?:\.\d+)?)_(-?\d+(?:\.\d+)?)$/.exec(query.get(name) || "");
  const time = pair("t"), rows = pair("rows"), told = query.get("colour"), colour = SHORT[told] || told;
  if (schedules.length > 2) choose((query.get("schedules") || "0_1").split("_").map(Number));
  if ([...$("colour").options].some(({ value }) => value === colour)) S.colour = $("colour").value = colour;
  setFilter(query.get("filter") || "");
  if (query.has("job")) pick(byNumber(Number(query.get("job"))), !time);
  if (rows) showRows(Number(rows[1]), Number(rows[2]));
  if (time) showTime(Number(time[1]), Number(time[2]));
}
