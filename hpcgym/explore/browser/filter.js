// Filters: "user alice", "wait_time > 2h", "requested_processors >= 64"; jobs must meet all terms.

// shorter words for measures, which have the names of columns
const SHORT = {
  submit: "submit_time", wait: "wait_time", start: "start_time", run: "run_time", end: "end_time",
  requested: "requested_time", slowdown: "bsld", job: "job_number",
  processors: "requested_processors", size: "requested_processors",
};
// columns of numbers, in place of the names that they may have
const NUMBERS = { user_id: "user", group_id: "group", executable: "code" };
const SECONDS = { s: 1, min: MINUTE, m: MINUTE, h: HOUR, d: DAY };
const COMPARE = {
  "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "=": (a, b) => a === b,
};
const MEASURE = new RegExp(
  `^(${[...Object.values(SHORT), ...Object.keys(SHORT)].join("|")})` +
    "\\s*(<=|>=|<|>|=)\\s*(\\d+(?:\\.\\d+)?)\\s*(s|min|m|h|d)?(?=[\\s,]|$)", "i",
);
const NAMED = /^(user_id|user|group_id|group|executable|code|queue|partition)\s*[:=]?\s*(?:"((?:[^"]|"")*)"|([^\s,]+))/i;

/** A name as a filter has it, whatever it holds: quotes within it are doubled. */
const quoted = (name) => `"${name.replaceAll('"', '""')}"`;

/**
 * The terms of a filter.
 * @throws {Error} that says in words what is no term.
 */
function parseFilter(text) {
  const terms = [];
  for (let rest = text.trim(); rest; rest = rest.replace(/^(\s|,|and\b)+/i, "")) {
    const measure = MEASURE.exec(rest), named = NAMED.exec(rest);
    if (measure) {
      const [, word, sign, number, unit] = measure, low = word.toLowerCase(), what = SHORT[low] || low;
      if (unit && !what.endsWith("_time")) throw new Error(`${word} has no unit ${unit}`);
      const value = Number(number) * SECONDS[(unit || "s").toLowerCase()];
      terms.push({ what, sign, value });
    } else if (named) {
      const word = named[1].toLowerCase();
      terms.push({ what: NUMBERS[word] || word, name: named[2]?.replaceAll('""', '"') ?? named[3] });
    } else {
      throw new Error(`no job number and no filter: ${rest}. Try user 7, wait_time > 2h, requested_processors >= 64`);
    }
    rest = rest.slice((measure || named)[0].length);
  }
  return terms;
}

/** Which of some names one means: those equal to it or to "user 7", else those that hold it. */
function meant(names, kind, name) {
  const wanted = name.toLowerCase(), low = names.map((one) => one.toLowerCase());
  const equal = low.map((one) => one === wanted || one === `${kind} ${wanted}`);
  return equal.includes(true) ? equal : low.map((one) => one.includes(wanted));
}

/** What a job is measured by: of(job) of a schedule. */
function measureOf(jobs, run, what) {
  const of = {
    job_number: (j) => jobs.number[j],
    submit_time: (j) => jobs.submit[j],
    start_time: (j) => run.start[j],
    end_time: (j) => run.end[j],
    wait_time: (j) => run.start[j] - jobs.submit[j],
    run_time: (j) => run.end[j] - run.start[j],
    requested_time: (j) => jobs.requested[j],
    requested_processors: (j) => jobs.size[j],
    bsld: (j) => boundedSlowdown(jobs, run, j),
  };
  return of[what];
}

/** (wait + run) / max(run at full speed, 10 s), at least 1. */
function boundedSlowdown(jobs, run, j) {
  const ran = run.full ? run.full[j] : run.end[j] - run.start[j];
  return Math.max((run.end[j] - jobs.submit[j]) / Math.max(ran, 10), 1);
}

/** Which jobs of a schedule meet all terms, a byte each; null without terms. */
function matching(jobs, run, terms) {
  if (!terms.length) return null;
  const tests = terms.map(({ what, sign, value, name }) => {
    if (sign) {
      const of = measureOf(jobs, run, what);
      return (j) => COMPARE[sign](of(j), value);
    }
    const kind = jobs.kinds[what];
    if (!kind) throw new Error(`these jobs have no ${what}s that differ`);
    const wanted = meant(kind.names, what, name);
    if (!wanted.includes(true)) throw new Error(`no ${what} is called ${name}`);
    return (j) => wanted[kind.of[j]];
  });
  const found = new Uint8Array(jobs.n);
  for (let j = 0; j < jobs.n; j++) found[j] = tests.every((test) => test(j)) ? 1 : 0;
  return found;
}
