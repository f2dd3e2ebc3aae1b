// Why a job waited, as far as a schedule alone tells it. The live app has the simulator, and asks that.

const MOST_TRIED = 2000;  // jobs that are taken out one by one, those with most of the wait

/**
 * Where a job would have had room in a pool of processors, with all others where they are.
 * Returns {free, first, without}: for how long of its wait enough processors were free at once [s];
 * the earliest time at which its whole run fits; without(i): the same if job i were not there.
 */
function roomFor(jobs, run, j) {
  const { times, values } = run.used, from = jobs.submit[j], start = run.start[j], end = run.end[j];
  const size = jobs.size[j], freeAt = (k) => run.processors - (k < 0 ? 0 : values[k]);  // from step k on
  /** The first time from `begin` on that has room for the run, `limit` if none before has. */
  const search = (begin, limit, i) => {
    let candidate = begin;
    for (let k = upper(times, begin) - 1; candidate < limit; k++) {
      const at = k < 0 ? begin : Math.max(times[k], begin), next = times[k + 1] ?? Infinity;
      const own = start <= at && at < end ? size : 0;
      const gone = i >= 0 && run.start[i] <= at && at < run.end[i] ? jobs.size[i] : 0;
      if (freeAt(k) + own + gone < size) candidate = next;
      else if (next - candidate >= end - start) return candidate;
    }
    return limit;
  };
  let free = 0;
  for (let k = upper(times, from) - 1, at = from; at < start; at = times[++k]) {
    if (freeAt(k) >= size) free += Math.min(times[k + 1], start) - at;
  }
  const first = search(from, start, -1);
  // only room that the other one takes can be won by its absence
  const without = (i) => {
    const limit = Math.min(first, run.end[i]);
    const found = search(Math.max(from, run.start[i] - (end - start)), limit, i);
    return found < limit ? found : first;
  };
  return { free, first, without };
}

/**
 * What a schedule tells of the wait of a job: jobs that ran and that waited as it came; those that
 * ran meanwhile, [row, processor seconds in the wait] each, the most first; and in a pool, as
 * `room` and `inWay`, what roomFor tells, [row, seconds earlier] each, the most first.
 */
function waitOf(jobs, run, j) {
  const from = jobs.submit[j], to = run.start[j], meanwhile = [];
  let running = 0, used = 0, ahead = 0;
  for (let i = 0; i < jobs.n && jobs.submit[i] <= to; i++) {
    if (i === j) continue;
    if (i < j && run.start[i] > from) ahead++;
    const spent = Math.min(run.end[i], to) - Math.max(run.start[i], from);
    if (spent <= 0) continue;
    meanwhile.push([i, spent * jobs.size[i]]);
    if (run.start[i] <= from) { running++; used += jobs.size[i]; }
  }
  meanwhile.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const found = { running, used, ahead, meanwhile, room: null, inWay: [] };
  if (run.row !== "processor" || to <= from) return found;
  const room = found.room = roomFor(jobs, run, j);
  for (const [i] of meanwhile.slice(0, MOST_TRIED)) {
    const earlier = room.first - room.without(i);
    if (earlier > 0) found.inWay.push([i, earlier]);
  }
  found.inWay.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return found;
}

/** The same in words, as the live app tells it of a simulation: {job, delayed, title, told}. */
function whyFrom(jobs, run, j) {
  const wait = run.start[j] - jobs.submit[j];
  if (wait <= 0) return { job: j, delayed: [], title: "", told: [] };
  const { running, used, ahead, meanwhile, room, inWay } = waitOf(jobs, run, j);
  const size = plural(jobs.size[j], "processor"), were = jobs.size[j] === 1 ? "was" : "were", lines = [];
  lines.push(`As it came, ${plural(running, "job")} had ${counted(used)} of ${plural(run.processors, "processor")}, and ${plural(ahead, "earlier job")} waited.`);
  if (room && !room.free) lines.push(`${size} ${were} not free at once until it started.`);
  if (room?.free) lines.push(`For ${span(room.free)} of its wait ${size} ${were} free. Then the rules kept it, such as the order of the queue or a reservation.`);
  if (room && room.first < run.start[j]) {
    lines.push(`If all others stay where they are, its whole run fits ${span(run.start[j] - room.first)} earlier.`);
  }
  if (room) {
    const found = inWay.length ? "Each job in its way: without it" : "No single job was in its way: without one";
    lines.push(`${found}, and with all others where they are, its run fits ${inWay.length ? "" : "no "}earlier.`);
  }
  const share = (i) => ` ${Math.round((100 * meanwhile[i][1]) / (wait * run.processors))}% `;
  const largest = buttonsOf(meanwhile, (i) => element("span", {}, jobButton(meanwhile[i][0]), share(i)));
  const told = lines.map((text) => element("p", {}, text));
  if (largest.length) told.push(element("p", {}, "Who had most of the machine in its wait: ", ...largest));
  return { job: j, delayed: inWay, title: `In its way: ${plural(inWay.length, "job")}`, told };
}

/** What the live app adds to that, and the commands that tell it. */
function liveAdds(j) {
  const { command, fixed } = S.head, code = (text) => element("code", {}, text);
  const live = ["The live app, ", code(`hpcgym explore ${command}`), ", does so, too."];
  return element(
    "p", { className: "soft" }, code(`hpcgym explain ${command} --job ${S.jobs.number[j]}`),
    " simulates again without each of these jobs, so that all others move too. ", ...(fixed ? [] : live),
  );
}
