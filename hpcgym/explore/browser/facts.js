// The facts of the picked job.

const MOST_NAMED = 8;

const jobButton = (j) =>
  element("button", { className: "job", onclick: () => pick(j, true) }, String(S.jobs.number[j]));

/** Jobs as buttons that pick them; made(i) makes that at place i. */
function buttonsOf(list, made = (i) => jobButton(list[i])) {
  const more = list.length > MOST_NAMED ? [` and ${counted(list.length - MOST_NAMED)} more`] : [];
  return [...list.slice(0, MOST_NAMED).map((_, i) => made(i)), ...more];
}

function showFacts() {
  const j = S.picked;
  document.body.dataset.job = j < 0 ? "" : S.jobs.number[j];
  if (j < 0) {
    const key = (name) => element("kbd", {}, name);
    const words = ["Click a job. ", key("/"), " finds one, ", key("?"), " tells all keys."];
    $("detail").replaceChildren(element("p", { className: "soft" }, ...words));
    return;
  }
  const { jobs, clock, runs } = S;
  for (const run of runs) if (!S.head.live && run.why?.job !== j) run.why = whyFrom(jobs, run, j);
  const names = Object.entries(jobs.kinds).map(([kind, { names, of }]) => [kind, names[of[j]]]);
  const facts = definitions([
    ...names,
    ["processors", counted(jobs.size[j])],
    ["requested", span(jobs.requested[j])],
    ["submitted", clock.seconds(jobs.submit[j])],
  ]);
  const none = { className: "close", title: "pick none", "aria-label": "Pick none", onclick: () => pick(-1) };
  const close = element("button", none, "×");
  const title = element("h2", {}, `Job ${jobs.number[j]}`, close);
  $("detail").replaceChildren(title, facts, ...expectedFacts(j), ...runs.map((run, k) => factsIn(run, k, j)), ...comparedFacts(j));
  if (!S.head.live && runs.some((run) => run.start[j] > jobs.submit[j])) $("detail").append(liveAdds(j));
}

/** What became of a job in one schedule: who delayed it first, who merely came later last. */
function factsIn(run, k, j) {
  const { jobs, clock } = S, { delayed, overtook, freed } = storyOf(jobs, run, j);
  const facts = definitions([
    ["waited", span(run.start[j] - jobs.submit[j])],
    ["started", clock.seconds(run.start[j])],
    ["ran", span(run.end[j] - run.start[j])],
    ["bounded slowdown", boundedSlowdown(jobs, run, j).toFixed(1)],
  ]);
  const { title = "", told = [] } = run.why?.job === j ? run.why : {};
  const bold = (className, text) => element("b", { className }, text);
  const by = (i) => element("div", {}, jobButton(delayed[i][0]), ` by ${span(delayed[i][1])}`);
  const late = element("div", {}, bold("delayed", title), ...buttonsOf(delayed, by));
  const alone = run.start[j] > jobs.submit[j] ? "No job ended as it started." : "It started at once.";
  const ended = freed.length
    ? ["It started when ", bold("freed", plural(freed.length, "job")), " ended: ", ...buttonsOf(freed)]
    : [alone];
  const why = element("div", { id: `why${k}`, className: "why" }, ...told);
  return element(
    "section", {}, element("h3", {}, run.name), facts, ...(delayed.length ? [late] : []), element("p", {}, ...ended), why,
    ...laterFacts(overtook, delayed.length > 0),
  );
}

/** Jobs that came later and started before, and are not known to have done harm; others: some did. */
function laterFacts(overtook, others) {
  if (!overtook.length) return [];
  const who = `${plural(overtook.length, others ? "other later job" : "later job")} started before it`;
  return [element("details", { className: "soft" }, element("summary", {}, who), ...buttonsOf(overtook))];
}

/** How a job fares in the second schedule beside the first. */
function comparedFacts(j) {
  if (S.runs.length < 2) return [];
  const [a, b] = S.runs, by = b.start[j] - a.start[j];
  const moved = `In ${b.name} it starts ${span(Math.abs(by))} ${by < 0 ? "earlier" : "later"}.`;
  return [element("p", { className: "soft" }, by ? moved : "It starts at the same time in both.")];
}
