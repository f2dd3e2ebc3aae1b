// The beginning: read the data, fill the page, listen.

/** What the jobs of an extract that came before it did as it began. */
function atBeginning() {
  const { begin } = S.head, old = upper(S.jobs.submit, begin - 1), { start } = S.runs[0];
  const running = start.subarray(0, old).filter((time) => time < begin).length;
  return `${counted(running)} ran and ${counted(old - running)} waited when the extract began`;
}

function fillPage() {
  const { head, jobs, runs } = S;
  document.title = head.name;
  $("name").textContent = head.name;
  $("about").textContent = `${plural(jobs.n, head.what)}, ${plural(runs[0].processors, "processor")}`;
  if (head.begin) $("about").textContent += `; ${atBeginning()}`;
  const measures = ["wait_time", "bsld", "requested_processors", ...(runs.length > 1 ? ["difference"] : [])];
  const options = [...Object.keys(jobs.kinds), ...measures];
  S.colour = options[0];
  $("colour").replaceChildren(...options.map((name) => element("option", {}, name)));
  for (const part of document.querySelectorAll(".second")) part.hidden = runs.length < 2;
  if (head.limits) $("about").textContent += `; ${head.limits}`;
  const reported = $("report") !== null;
  $("explorer").classList.toggle("reported", reported);
  $("down").hidden = !reported;
  $("all").hidden = reported;  // the report has them all
}

function listen() {
  for (const pane of document.querySelectorAll(".pane")) listenToPane(pane);
  listenToMap();
  addEventListener("keydown", onKey);
  addEventListener("hashchange", recall);
  new ResizeObserver(draw).observe($("stage"));
  $("find").addEventListener("change", () => find($("find").value));
  $("find").addEventListener("input", () => { if (!$("find").value) setFilter(""); });
  $("colour").addEventListener("change", () => { S.colour = $("colour").value; recolour(); });
  const turn = (dark) => { setTheme(dark); recolour(); showStatistics(); };
  $("theme").addEventListener("click", () => turn(!S.dark));
  systemIsDark.addEventListener("change", () => turn(null));
  $("keys").addEventListener("click", showHelp);
  $("png").addEventListener("click", savePng);
  $("svg").addEventListener("click", () => saveSvg());
  $("listed").addEventListener("toggle", showTable);
  $("selected").addEventListener("toggle", showSelection);
  $("closer").addEventListener("click", () => zoom(0.5));
  $("farther").addEventListener("click", () => zoom(2));
  $("whole").addEventListener("click", showWhole);
  $("down").addEventListener("click", () => $("report").scrollIntoView());
  listenToHeadings();
  $("all").addEventListener("click", () => {
    const all = $("statistics").dataset.all === "1";
    $("statistics").dataset.all = all ? "" : "1";
    $("all").textContent = all ? "all metrics" : "fewer metrics";
    showStatistics();
  });
}

async function main() {
  const { head, columns } = unpack(await gunzip($("data").textContent));
  $("data").remove();
  const jobs = jobsOf(head, columns);
  jobs.ran = columns[head.runs[0].columns.run];
  Object.assign(S, { head, jobs, columns, clock: clockOf(head) });
  startChoice(head.runs);
  S.view = { t0: head.opens[0], t1: head.opens[1] };
  S.rows = { low: 0, high: allRows() };
  setTheme(null);
  fillPage();
  recolour();
  showStatistics();
  listen();
  pick(-1);
  recall();
  if (head.fans) takeFans(head.fans);
  if (head.live) startLive();
  draw();
  requestAnimationFrame(() => requestAnimationFrame(() => { document.body.dataset.ready = "1"; }));
}

/** For tests and scripts: where a job is on the screen, null if it is out of view. */
function locate(number, k = 0) {
  const j = byNumber(number);
  if (j < 0) return null;
  const box = $(`gantt${k}`).getBoundingClientRect(), run = S.runs[k], scale = scaleOf(box.width, box.height);
  const i = run.pieces.first[j];
  const x = scale.x((run.start[j] + run.end[j]) / 2), y = scale.y((run.pieces.low[i] + run.pieces.high[i]) / 2);
  return x < 0 || x > box.width || y < 0 || y > box.height ? null : { x: box.x + x, y: box.y + y };
}

window.explorer = { state: S, locate, svgText };
main().catch((error) => {
  const old = typeof DecompressionStream === "undefined" ? "This page needs a browser of 2023 or newer: " : "";
  $("wrong").textContent = `${old}${error.message}`;
  throw error;
});
