// The live app: what the controls say is simulated anew, and the second schedule changes.

const QUIET = 600;  // ms without a change, after which the picked job is explained anew
let asking = false, newer = false, explaining = 0, expecting = false;

/** Ask the server something; its errors are words. */
async function ask(what, question) {
  const answer = await fetch(what, { method: "POST", body: JSON.stringify(question) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
}

/** The rules that the controls say. */
function wanted() {
  const form = $("controls").elements, policy = form.policy.value, { rules } = S.head.live;
  const weights = S.head.live.weights.map((name) => form[`weight ${name}`].value).join(",");
  const orders = { weights, expression: form.expression.value };
  // a slider that has not been moved says what was given, which may lie between its steps
  const said = (name, given, unit) =>
    form[name].value === form[name].dataset.begin ? given : Number(form[name].value) * unit || null;
  return {
    policy: orders[policy] ?? policy,
    backfill: form.backfill.value === "depth:K" ? `depth:${form.depth.value}` : form.backfill.value,
    estimate: form.estimate.value,
    threshold: said("threshold", rules.threshold, HOUR),
    hold: said("hold", rules.hold, 1),
    processors: form.processors ? Number(form.processors.value) : null,
  };
}

/** Simulate what the controls say; while that is asked, only their newest position is kept. */
async function simulateAnew() {
  if (asking) { newer = true; return; }
  asking = true;
  do {
    newer = false;
    try {
      const answer = await ask("simulate", wanted());
      takeSchedule(unpack(await answer.text()));
    } catch (error) {
      $("state").textContent = error instanceof TypeError ? "hpcgym explore has ended" : error.message;
      $("state").className = "wrong";
    }
    // the next question waits for the picture: else pictures would come late and all at once
    await new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });
    document.body.dataset.live = Number(document.body.dataset.live || 0) + 1;
  } while (newer);
  asking = false;
}

function takeSchedule({ head, columns }) {
  const { view, rows } = S, all = allRows();
  S.runs[1] = scheduleOf(head.run, columns, S.jobs);
  S.head.statistics = head.statistics;
  S.whole = extent(S.runs);
  S.view = view;
  S.rows = all === allRows() ? rows : { low: 0, high: allRows() };
  const run = S.runs[1];
  run.title = `${plural(run.processors, "processor")}: ${run.rules}`;
  showStatistics();
  if (S.terms.length || S.colour in EDGES) recolour(); else S.palette.of[1] = S.palette.of[0];
  refreshFacts();
  $("state").textContent = `simulated in ${head.ms.toFixed(1)} ms`;
  $("state").className = "soft";
  draw();
}

/** Ask why a job waited in one schedule, and show the answer if it is still the picked one. */
async function explainIn(k, j) {
  if (j < 0 || S.picked !== j) return;
  const run = S.runs[k], current = () => S.picked === j && S.runs[k] === run;
  const tell = (delayed, told) => {
    if (!current()) return;
    run.why = { job: j, delayed, title: `${plural(delayed.length, "job")} delayed it`, told };
    showFacts();
    drawOver();
  };
  tell([], ["looking for who delayed it …"]);
  try {
    const rules = k ? wanted() : {};
    const answer = await ask("explain", { schedule: k, job: S.jobs.number[j], ...rules });
    const { sentences, delayed } = await answer.json();
    const rows = delayed.map(([number, seconds]) => [byNumber(number), seconds]);
    tell(rows, sentences.map((text) => element("p", {}, text)));
  } catch (error) {
    tell([], [error.message]);
  }
}

/** Facts of the picked job once the second schedule has changed; what holds of the first stays. */
function refreshFacts() {
  showFacts();
  if (S.picked < 0) return;
  clearTimeout(explaining);
  explaining = setTimeout(() => explainIn(1, S.picked), QUIET);
}

/** Ask what was expected at the slider's moment; while that is asked, only its newest position is kept. */
async function expectAnew() {
  S.now = Number($("now").value);
  placeNow();
  if (expecting) return;
  expecting = true;
  let at;
  do {
    at = Math.round(S.now);
    try {
      const told = await (await ask("forecast", { at: Math.max(at, 0) })).json();
      if (Math.round(S.now) === at) takeFans(told);
      $("moment-about").textContent = "";
    } catch (error) {
      S.fans = null;
      $("moment-about").textContent = error instanceof TypeError ? "hpcgym explore has ended" : error.message;
      draw();
    }
    document.body.dataset.expected = at;
  } while (Math.round(S.now) !== at);
  expecting = false;
}

async function saveAs(what) {
  try {
    const text = await (await ask("save", { what, ...wanted() })).text();
    if (what === "page") download(fileName(".html"), text, "text/html");
    if (what === "scheduler") download("scheduler.toml", text, "text/plain");
    if (what !== "command") return;
    $("command").value = text;
    $("saved").showModal();
    $("command").select();
  } catch (error) {
    $("state").textContent = error.message;
    $("state").className = "wrong";
  }
}

function choice(name, title, options, value) {
  const made = options.map((one) => element("option", { selected: one === value }, one));
  return element("label", {}, title, element("select", { name }, ...made));
}

/** A slider; last: what it tells at its end. */
function slider(name, title, { min, max, step, value, last = String(max) }) {
  const told = (at) => (Number(at) === max ? last : String(at));
  const shown = element("output", {}, told(value));
  const input = element("input", { type: "range", name, min, max, step });
  input.value = value;
  input.dataset.begin = input.value;
  input.addEventListener("input", () => { shown.textContent = told(input.value); });
  return element("label", {}, title, input, shown);
}

/** The controls, as the server's rules are. */
function controlsOf({ policies, weights, backfills, estimates, rules, processors }) {
  const order = policies.includes(rules.policy) ? rules.policy : "expression";
  const [, depth] = /^depth:(\d+)$/.exec(rules.backfill) || [];
  const ways = backfills.includes(rules.backfill) || depth ? backfills : [...backfills, rules.backfill];
  const known = estimates.includes(rules.estimate) ? estimates : [...estimates, rules.estimate];
  const value = order === "expression" ? rules.policy : "20 * wait - requested * processors";
  const field = element("input", { name: "expression", type: "text", value, spellcheck: false });
  const typed = element("label", { className: "of expression" }, "expression", field);
  const each = weights.map((name) => {
    const begin = name === "area" ? -1 : 0;  // least area first
    const one = slider(`weight ${name}`, `weight of ${name}`, { min: -1, max: 1, step: 0.05, value: begin });
    one.classList.add("of", "weights");
    return one;
  });
  const { least, most, usual } = processors || {};
  const size = processors ? [slider("processors", "processors", { min: least, max: most, step: 1, value: usual })] : [];
  const hours = Math.round((rules.threshold || 0) / HOUR);
  const reservations = slider("depth", "reservations", { min: 2, max: 50, step: 1, value: Number(depth) || 10 });
  reservations.classList.add("of", "depth");
  return [
    choice("policy", "order", [...policies, "weights", "expression"], order), typed, ...each,
    choice("backfill", "backfilling", ways, depth ? "depth:K" : rules.backfill), reservations,
    choice("estimate", "estimate", known, rules.estimate),
    slider("threshold", "threshold (h)", { min: 0, max: 200, step: 1, value: hours }),
    slider("hold", "hold (share)", { min: 0, max: 0.5, step: 0.01, value: rules.hold || 0 }),
    ...size,
  ];
}

/** Show only the controls that mean something. */
function showControls() {
  const form = $("controls").elements;
  const meant = new Set([form.policy.value, form.backfill.value === "depth:K" ? "depth" : ""]);
  for (const one of document.querySelectorAll("#controls .of")) one.hidden = !meant.has(one.classList[1]);
}

function startLive() {
  $("live").hidden = $("moment").hidden = false;
  if (S.fans) $("moment-about").textContent = "";
  $("now").addEventListener("input", expectAnew);
  $("controls").append(...controlsOf(S.head.live));
  showControls();
  $("controls").addEventListener("input", () => { showControls(); simulateAnew(); });
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  for (const what of ["command", "scheduler", "page"]) $(`save-${what}`).addEventListener("click", () => saveAs(what));
}

/** What else follows when a job is picked. */
async function whenPicked(j) {
  if (!S.head.live) return;
  $("detail").scrollIntoView({ block: "nearest" });  // it may be below the controls
  await explainIn(0, j);
  await explainIn(1, j);
}
