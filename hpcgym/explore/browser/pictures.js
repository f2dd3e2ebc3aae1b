// What is seen, as a file: PNG of the pixels, or SVG of shapes.

const MOST_SHAPES = 20000;  // pieces in an SVG; of more the pixels are taken
const SVG = "http://www.w3.org/2000/svg";

/** The canvases of the picture from top to bottom, each with the label over it. */
function panesShown() {
  return [...document.querySelectorAll("#stage .pane:not([hidden])")].map((pane) => ({
    canvases: [...pane.querySelectorAll("canvas")],
    run: pane.dataset.run === undefined ? null : Number(pane.dataset.run),
    fans: pane.id === "fans-pane",
    waits: pane.contains($("daily-waits")),
    label: pane.querySelector(".label").textContent,
    width: pane.clientWidth,
    height: pane.clientHeight,
  }));
}

function savePng() {
  const panes = panesShown(), axis = $("axis"), ratio = axis.width / axis.clientWidth;
  const height = panes.reduce((sum, pane) => sum + pane.canvases[0].height, axis.height);
  const whole = document.createElement("canvas");
  Object.assign(whole, { width: axis.width, height });
  const g = whole.getContext("2d");
  g.fillStyle = S.background;
  g.fillRect(0, 0, whole.width, height);
  g.font = `${12 * ratio}px system-ui, sans-serif`;
  let top = 0;
  for (const { canvases, label } of panes) {
    for (const canvas of canvases) g.drawImage(canvas, 0, top);
    g.fillStyle = S.background;
    g.globalAlpha = 0.86;
    g.fillRect(4 * ratio, top + 3 * ratio, g.measureText(label).width + 8 * ratio, 17 * ratio);
    g.globalAlpha = 1;
    g.fillStyle = ink();
    g.fillText(label, 8 * ratio, top + 15 * ratio);
    top += canvases[0].height;
  }
  g.drawImage(axis, 0, top);
  whole.toBlob((blob) => download(fileName(".png"), blob));
}

/** A shape of an SVG. Attributes and text are set as such, so names cannot become markup. */
function shape(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

const short = (number) => Number(number.toFixed(2));

function svgText() {
  const panes = panesShown(), { width } = panes[0];
  const height = panes.reduce((sum, pane) => sum + pane.height, 26);
  const viewBox = `0 0 ${width} ${height}`, font = { "font-family": "sans-serif", "font-size": 12 };
  const halo = { stroke: S.background, "stroke-width": 3, "paint-order": "stroke" };
  const sheet = shape("svg", { xmlns: SVG, width, height, viewBox, ...font });
  sheet.append(shape("title", {}, S.head.name), shape("rect", { width, height, fill: S.background }));
  let top = 0;
  for (const pane of panes) {
    // a nested svg cuts off what lies outside of the view
    const part = shape("svg", { y: top, width, height: pane.height });
    part.append(...(pane.run !== null ? (isFar() ? shareShapes : jobShapes)(pane) : pane.fans ? fanPicture(pane) : pane.waits ? waitShapes(pane) : curveShapes(pane)));
    part.append(shape("text", { x: 6, y: 14, fill: ink(), ...halo }, pane.label));
    sheet.append(part);
    top += pane.height;
  }
  const { x } = scaleOf(width, 1);
  for (const [time, text] of ticks(width, 1)) {
    sheet.append(shape("rect", { x: short(x(time)), y: top, width: 1, height: 4, fill: ink() }));
    const place = { x: short(x(time)), y: top + 17, "text-anchor": "middle" };
    sheet.append(shape("text", { ...place, fill: ink(), "font-size": 11 }, text));
  }
  return new XMLSerializer().serializeToString(sheet);
}

function jobShapes({ run: k, width, height, canvases }) {
  const { pieces } = S.runs[k], scale = scaleOf(width, height), shapes = [];
  const { t0, t1 } = S.view, { low, high } = S.rows, classes = S.palette.of[k];
  let count = 0;
  eachVisible(pieces, t0, t1, low, high, () => { count++; });
  if (count > MOST_SHAPES) return [shape("image", { width, height, href: canvases[0].toDataURL() })];
  eachVisible(pieces, t0, t1, low, high, (i) => {
    const x = scale.x(pieces.begin[i]), y = scale.y(pieces.low[i]);
    const box = { x, y, width: scale.x(pieces.stop[i]) - x, height: scale.y(pieces.high[i]) - y };
    for (const key of Object.keys(box)) box[key] = short(box[key]);
    const fill = S.palette.table[classes[pieces.job[i]]];
    const part = shape("rect", { ...box, fill, stroke: S.background, "stroke-width": 0.5 });
    part.append(shape("title", {}, `job ${S.jobs.number[pieces.job[i]]}`));
    shapes.push(part);
  });
  return shapes;
}

function shareShapes({ run: k, width, height }) {
  const boxes = shareBoxes(k, farOf(k, width), width, height);
  return boxes.map(([x, y, w, h, group]) => shape("rect", { x: short(x), y: short(y), width: short(w), height: short(h), fill: groupColour(group) }));
}

function waitShapes({ width, height }) {
  const { shown, top } = waitsShown(width), y = yOf(top, height, 1), { x } = scaleOf(width, 1);
  return shown.flatMap(({ edges, median, high }, k) => [...median.keys()].filter((bin) => high[bin]).flatMap((bin) => {
    const box = { x: short(x(edges[bin])), width: short(x(edges[bin + 1]) - x(edges[bin])), fill: lineColour(k) };
    const band = { y: short(y(high[bin])), height: short(y(median[bin]) - y(high[bin])), opacity: 0.25 };
    return [shape("rect", { ...box, ...band }), shape("rect", { ...box, y: short(y(median[bin]) - 1), height: 1.6 })];
  }));
}

function fanPicture({ width, height }) {
  const room = roomOfFans(fansShown(), S.picked, height, 1);
  const { boxes, dots } = fanShapes(room, S.runs[0].start, scaleOf(width, 1).x, width, 1);
  const box = ([x, y, w, h, opacity]) => shape("rect", { x: short(x), y: short(y), width: short(w), height: short(h), fill: lineColour(0), opacity });
  const dot = ([cx, cy, r]) => shape("circle", { cx: short(cx), cy: short(cy), r: short(r), fill: lineColour(1), stroke: S.background });
  return [...boxes.map(box), ...dots.map(dot)];
}

function curveShapes({ canvases, width, height }) {
  const { bands, top } = curvesIn(canvases[0].id, width);
  const at = yOf(top, height, 1), y = (value) => short(at(value));
  return bands.map(([{ mean }, k]) => {
    const points = Array.from(mean, (value, x) => `${x},${y(value)}`).join(" ");
    return shape("polyline", { points, fill: "none", stroke: lineColour(k), "stroke-width": 1.3 });
  });
}

const saveSvg = () => download(fileName(".svg"), svgText(), "image/svg+xml");
