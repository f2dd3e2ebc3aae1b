// The Gantt chart as pixels: each has the mean colour of what lies in it, so that nothing is lost
// or widened, however small.

const MOST_HIGH = 1200;  // pixels of a picture of many rows
const MANY = 150000;  // pieces, from which on a wide picture is kept
const WIDE = { width: 16384, high: 600 };

/** What is to be drawn: [t0, t1) and rows from low to high on so many pixels. */
function frameOf(t0, t1, low, high, width, most = MOST_HIGH) {
  const height = Math.max(1, Math.min(high - low, most));
  return { t0, t1, low, high, width, height };
}

let kept = null;  // memory of the frame before, for the next of its size

function cells({ width, height }) {
  const n = width * height;
  if (kept && kept.image.width === width && kept.image.height === height) {
    kept.sums.fill(0);
    kept.full.fill(0);
  } else {
    kept = { sums: new Float32Array(4 * n), full: new Uint32Array(n), image: new ImageData(width, height) };
  }
  return kept;
}

/** Draw pieces: {image, drawn}. classes: which colour of the palette each job has. */
function rasterise(pieces, classes, palette, background, frame) {
  const { t0, t1, low, high, width, height } = frame;
  const { sums, full, image } = cells(frame);
  const sx = width / (t1 - t0), sy = height / (high - low);
  let drawn = 0;
  eachVisible(pieces, t0, t1, low, high, (i) => {
    drawn++;
    const x0 = Math.max((pieces.begin[i] - t0) * sx, 0), x1 = Math.min((pieces.stop[i] - t0) * sx, width);
    const y0 = Math.max((pieces.low[i] - low) * sy, 0), y1 = Math.min((pieces.high[i] - low) * sy, height);
    const of = classes[pieces.job[i]], colour = palette.rgb[of], whole = palette.pixels[of];
    for (let y = Math.floor(y0); y < y1; y++) {
      const share = Math.min(y + 1, y1) - Math.max(y, y0);
      bar(sums, full, y * width, x0, x1, share, colour, whole);
    }
  });
  finish(sums, full, image, background);
  return { image, drawn };
}

/** Draw a bar of one row of pixels, from x0 to x1, which fills a share of its height. */
function bar(sums, full, row, x0, x1, share, colour, whole) {
  const first = Math.floor(x0), last = Math.floor(x1);
  if (first === last) { mix(sums, row + first, colour, (x1 - x0) * share); return; }
  let from = first;
  if (x0 > first) mix(sums, row + from++, colour, (first + 1 - x0) * share);
  if (share > 0.999) full.fill(whole, row + from, row + last);
  else for (let x = from; x < last; x++) mix(sums, row + x, colour, share);
  if (x1 > last) mix(sums, row + last, colour, (x1 - last) * share);
}

function mix(sums, cell, [r, g, b], weight) {
  const at = 4 * cell;
  sums[at] += r * weight;
  sums[at + 1] += g * weight;
  sums[at + 2] += b * weight;
  sums[at + 3] += weight;
}

/** Turn sums of colours into pixels; the background fills what is left of each. */
function finish(sums, full, image, [br, bg, bb]) {
  const out = new Uint32Array(image.data.buffer), empty = pixel([br, bg, bb]);
  for (let i = 0, at = 0; i < out.length; i++, at += 4) {
    const weight = sums[at + 3];
    if (full[i] || !weight) { out[i] = full[i] || empty; continue; }
    const part = weight > 1 ? 1 / weight : 1, rest = weight > 1 ? 0 : 1 - weight;
    const r = sums[at] * part + br * rest, g = sums[at + 1] * part + bg * rest, b = sums[at + 2] * part + bb * rest;
    out[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
}

/**
 * A frame out of a wide picture of the whole schedule, whose bins are averaged: {image, drawn};
 * null where single pieces are few enough, or the wide picture is too coarse.
 */
function overview(run, frame, whole, key, draw) {
  const bins = ((frame.t1 - frame.t0) / (whole.t1 - whole.t0)) * WIDE.width / frame.width;
  if (run.pieces.n < MANY || bins < 2 || frame.low > 0 || frame.high < run.rows) return null;
  if (run.wideKey !== key) {
    const { image } = draw(frameOf(whole.t0, whole.t1, 0, run.rows, WIDE.width, WIDE.high));
    run.wide = { data: image.data, height: image.height };
    run.wideKey = key;
    kept = null;  // its memory is this picture
  }
  return { image: averaged(run.wide, frame, whole), drawn: run.pieces.n };
}

function averaged(wide, frame, whole) {
  const image = new ImageData(frame.width, wide.height), out = image.data, from = wide.data;
  const binAt = (x) => {
    const time = frame.t0 + ((frame.t1 - frame.t0) * x) / frame.width;
    return Math.round(((time - whole.t0) / (whole.t1 - whole.t0)) * WIDE.width);
  };
  const edges = Int32Array.from({ length: frame.width + 1 }, (_, x) => binAt(x));
  for (let y = 0, at = 0; y < wide.height; y++) {
    for (let x = 0; x < frame.width; x++, at += 4) {
      const a = Math.max(edges[x], 0), b = Math.min(edges[x + 1], WIDE.width);
      if (b <= a) continue;  // outside of the schedule: see-through
      let r = 0, g = 0, l = 0;
      for (let i = (y * WIDE.width + a) * 4, end = i + (b - a) * 4; i < end; i += 4) {
        r += from[i]; g += from[i + 1]; l += from[i + 2];
      }
      out[at] = r / (b - a); out[at + 1] = g / (b - a); out[at + 2] = l / (b - a); out[at + 3] = 255;
    }
  }
  return image;
}
