// Which rows each job is drawn on. A piece is a job on adjacent rows, from low to high, exclusive.

/** Free rows as ranges: sorted, apart from each other. As report/placement.py has them. */
function freeRows(rows) {
  const lows = [0], highs = [rows];

  function cut(place, low) {
    if (low < highs[place]) { lows[place] = low; return; }
    lows.splice(place, 1);
    highs.splice(place, 1);
  }

  /** Take rows, one range if any is long enough, else the lowest ones; put(low, high) is told. */
  function allocate(size, put) {
    for (let i = 0; i < lows.length; i++) {
      if (highs[i] - lows[i] < size) continue;
      put(lows[i], lows[i] + size);
      cut(i, lows[i] + size);
      return;
    }
    while (size) {
      if (!lows.length) throw new Error("the schedule uses more processors than the machine has");
      const low = lows[0], high = Math.min(highs[0], low + size);
      put(low, high);
      cut(0, high);
      size -= high - low;
    }
  }

  /** Give a range back, joined with its free neighbours. */
  function release(low, high) {
    let place = upper(lows, low);
    if (lows[place] === high) {
      high = highs[place];
      lows.splice(place, 1);
      highs.splice(place, 1);
    }
    if (place && highs[place - 1] === low) { highs[place - 1] = high; return; }
    lows.splice(place, 0, low);
    highs.splice(place, 0, high);
  }

  return { allocate, release };
}

/** A heap of jobs, the one that ends first on top. */
function jobsByEnd(end) {
  const heap = [];

  function push(job) {
    let at = heap.length;
    heap.push(job);
    for (let above; at && end[heap[above = (at - 1) >> 1]] > end[job]; at = above) {
      heap[at] = heap[above];
    }
    heap[at] = job;
  }

  function pop() {
    const top = heap[0], job = heap.pop(), n = heap.length;
    if (!n) return top;
    let at = 0;
    for (let below = 1; below < n; at = below, below = 2 * at + 1) {
      if (below + 1 < n && end[heap[below + 1]] < end[heap[below]]) below++;
      if (end[heap[below]] >= end[job]) break;
      heap[at] = heap[below];
    }
    heap[at] = job;
    return top;
  }

  return { push, pop, next: () => (heap.length ? end[heap[0]] : Infinity) };
}

/** Pieces of all jobs on a pool of processors: the same as report/placement.py gives them. */
function placeOnPool(start, end, size, rows, order = argsort(start)) {
  const free = freeRows(rows), running = jobsByEnd(end), n = start.length;
  const job = [], low = [], high = [];
  const first = new Int32Array(n), count = new Int32Array(n);
  for (const j of order) {
    while (running.next() <= start[j]) {
      const ended = running.pop();
      for (let i = first[ended]; i < first[ended] + count[ended]; i++) free.release(low[i], high[i]);
    }
    first[j] = job.length;
    free.allocate(size[j], (a, b) => { job.push(j); low.push(a); high.push(b); });
    count[j] = job.length - first[j];
    running.push(j);
  }
  return { job: Int32Array.from(job), low: Int32Array.from(low), high: Int32Array.from(high), first, count };
}

/** The same of pieces that the page was told, job after job: here in the order of their starts. */
function orderPieces(start, counts, lows, widths) {
  const n = start.length, total = lows.length, told = new Int32Array(n + 1);
  for (let j = 0; j < n; j++) told[j + 1] = told[j] + counts[j];
  const job = new Int32Array(total), low = new Int32Array(total), high = new Int32Array(total);
  const first = new Int32Array(n), count = Int32Array.from(counts);
  let k = 0;
  for (const j of argsort(start)) {
    first[j] = k;
    for (let i = told[j]; i < told[j + 1]; i++, k++) {
      job[k] = j;
      low[k] = lows[i];
      high[k] = lows[i] + widths[i];
    }
  }
  return { job, low, high, first, count };
}

// Pieces come in blocks, so that those which end before a view are passed over together.
const BLOCK = 256;

/** Pieces with their times and, of each block, the latest end. */
function timed(pieces, start, end) {
  const n = pieces.job.length;
  const begin = new Float64Array(n), stop = new Float64Array(n);
  const latest = new Float64Array(Math.ceil(n / BLOCK)).fill(-Infinity);
  for (let i = 0; i < n; i++) {
    begin[i] = start[pieces.job[i]];
    stop[i] = end[pieces.job[i]];
    const block = (i / BLOCK) | 0;
    if (stop[i] > latest[block]) latest[block] = stop[i];
  }
  return { ...pieces, n, begin, stop, latest };
}

/** Call visit(i) for each piece that lies in [t0, t1) and on rows from low to high. */
function eachVisible(pieces, t0, t1, low, high, visit) {
  const last = upper(pieces.begin, t1);
  for (let block = 0; block * BLOCK < last; block++) {
    if (pieces.latest[block] <= t0) continue;
    const end = Math.min(last, (block + 1) * BLOCK);
    for (let i = block * BLOCK; i < end; i++) {
      if (pieces.stop[i] > t0 && pieces.high[i] > low && pieces.low[i] < high) visit(i);
    }
  }
}
