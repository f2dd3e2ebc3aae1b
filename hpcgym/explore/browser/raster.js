// The Gantt chart as pixels: each has the mean colour of what lies in it, so that nothing is lost
// or widened, however small.

/** What is to be drawn: [t0, t1) and rows from low to high, each a pixel, or on the most there are. */
function frameOf(t0, t1, low, high, width, most) {
  const height = Math.max(1, Math.min(high - low, most));
  return { t0, t1, low, high, width, height };
}

let kept = null;  // memory of the frame before, for the next of its size

/** Memory: of each pixel by how much its sums differ from those above it, and who fills it whole. */
function cells({ width, height }) {
  if (kept && kept.image.width === width && kept.image.height === height) {
    kept.steps.fill(0);
    kept.full.fill(0);
  } else {
    const steps = new Float32Array(4 * width * (height + 1)), full = new Uint32Array(width * height);
    kept = { steps, full, image: new ImageData(width, height) };
  }
  return kept;
}

/** Draw pieces: {image, drawn}. classes: which colour of the palette each job has. */
function rasterise(pieces, classes, palette, background, frame) {
  const { t0, t1, low, high, width, height } = frame;
  const { steps, full, image } = cells(frame);
  const sx = width / (t1 - t0), sy = height / (high - low);
  let drawn = 0;
  eachVisible(pieces, t0, t1, low, high, (i) => {
    drawn++;
    const x0 = Math.max((pieces.begin[i] - t0) * sx, 0), x1 = Math.min((pieces.stop[i] - t0) * sx, width);
    const y0 = Math.max((pieces.low[i] - low) * sy, 0), y1 = Math.min((pieces.high[i] - low) * sy, height);
    const of = classes[pieces.job[i]], colour = palette.rgb[of];
    const first = Math.floor(x0), last = Math.floor(x1), narrow = first === last;
    column(steps, width, first, y0, y1, colour, narrow ? x1 - x0 : first + 1 - x0);
    if (narrow) return;
    if (x1 > last) column(steps, width, last, y0, y1, colour, x1 - last);
    if (last > first + 1) middle(steps, full, width, first + 1, last, y0, y1, colour, palette.pixels[of]);
  });
  finish(steps, full, image, background);
  return { image, drawn };
}

/** Draw on a column of pixels, of which a share of the width is filled: four steps, however high. */
function column(steps, width, x, y0, y1, colour, share) {
  const first = Math.floor(y0), last = Math.floor(y1), at = first * width + x;
  if (first === last) {
    step(steps, at, colour, (y1 - y0) * share);
    step(steps, at + width, colour, (y0 - y1) * share);
    return;
  }
  const top = (first + 1 - y0) * share, bottom = (y1 - last) * share, end = last * width + x;
  step(steps, at, colour, top);
  if (top < share) step(steps, at + width, colour, share - top);
  step(steps, end, colour, bottom - share);
  if (bottom > 0) step(steps, end + width, colour, -bottom);
}

/** Draw on pixels that are filled from side to side, from one column up to another. */
function middle(steps, full, width, from, to, y0, y1, colour, whole) {
  const first = Math.ceil(y0), last = Math.floor(y1);
  for (let y = first; y < last; y++) full.fill(whole, y * width + from, y * width + to);
  if (y0 < first) for (let x = from; x < to; x++) column(steps, width, x, y0, Math.min(first, y1), colour, 1);
  if (y1 > last && last >= first) for (let x = from; x < to; x++) column(steps, width, x, last, y1, colour, 1);
}

function step(steps, cell, colour, weight) {
  const at = 4 * cell;  // a colour is not taken apart: that takes longer than the sums
  steps[at] += colour[0] * weight;
  steps[at + 1] += colour[1] * weight;
  steps[at + 2] += colour[2] * weight;
  steps[at + 3] += weight;
}

/** Turn steps of sums of colours into pixels; the background fills what is left of each. */
function finish(steps, full, image, [br, bg, bb]) {
  const { width } = image, out = new Uint32Array(image.data.buffer), sums = new Float64Array(4 * width);
  for (let i = 0, row = 0; row < image.height; row++) {
    for (let at = 0; at < 4 * width; at += 4, i++) {
      const r = sums[at] += steps[4 * i], g = sums[at + 1] += steps[4 * i + 1], b = sums[at + 2] += steps[4 * i + 2];
      const weight = sums[at + 3] += steps[4 * i + 3];
      if (full[i]) { out[i] = full[i]; continue; }
      // what rounding leaves where nothing lies is less than a half
      const part = weight > 1 ? 1 / weight : 1, rest = weight > 1 ? 0 : 1 - weight;
      const red = r * part + br * rest + 0.5, green = g * part + bg * rest + 0.5, blue = b * part + bb * rest + 0.5;
      out[i] = (255 << 24) | (Math.min(blue, 255) << 16) | (Math.min(green, 255) << 8) | Math.min(red, 255);
    }
  }
}
