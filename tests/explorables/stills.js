// The still pictures of the pages, for stills.py: still(name) draws one in the open page and returns it as text.
"use strict";
const { svg, format, chart: makeChart } = trueonline.widgets;
const { METHODS } = trueonline.methods;
const ALL = Object.values(METHODS);
const [WIDTH, HEIGHT] = [800, 450];

const DRAWINGS = {
  traces(paper) {
    const { pattern, visitTraces } = trueonline.traces;
    const curves = visitTraces(pattern("always", 30), { alpha: 0.3, fade: 0.9 });
    chart(paper, 10, 15, 780, { height: 425, x: { label: "time step", min: -0.5, max: 29.5 }, y: { label: "trace of a feature that is seen at every step", min: 0, max: 10.5 } }, {
      series: ALL.map((m) => ({ ...m, points: curves[m.name].map((e, t) => [t, e]), markers: "all", width: 2.5 })),
      lines: [1, 2].map((n) => ({ y: n / 0.3, colour: "var(--ink)", label: n === 1 ? "above 1/α a change overshoots" : "above 2/α things get worse" })),
      marks: [["accumulate", 6.2, 8.1], ["true_online", 12, 2.1], ["replace", 12, 0.5]].map(([name, x, y]) => ({ ...METHODS[name], x, y, label: `${METHODS[name].trace} trace` })),
    });
  },

  forward_backward(paper) {
    const triangle = document.querySelector(".triangle");
    const box = triangle.viewBox.baseVal;
    place(paper, triangle, 14, 64, 370, (370 * box.height) / box.width);
    write(paper, "forward: all updates again", 30, 36);
    write(paper, "backward: one update", 420, 36);
    const { learners } = trueonline.forwardBackward.compare({ kind: "tabular", seed: 19, alpha: 0.5, gamma: 0.95, lam: 0.9 });
    const floor = 1e-17;
    const power = (v) => (v === floor ? "0" : format(v, 1).replace("1·", ""));
    chart(paper, 400, 55, 390, { height: 385, x: { label: "time step", min: 0, max: 11 },
      y: { label: "difference from the forward view", min: floor, max: 1000, log: true, ticks: [floor, 1e-13, 1e-9, 1e-5, 1e-1], format: power } }, {
      series: ALL.map((m) => ({ ...m, markers: "all", points: [[0, floor], ...learners[m.name].apart.map((d, i) => [i + 1, Math.max(d, floor)])] })),
      marks: [["accumulate", 1e-2], ["replace", 3e-4], ["true_online", 1e-13]].map(([name, y]) => ({ ...METHODS[name], x: 5.6, y, label: METHODS[name].title, anchor: "start" })),
    });
  },
};

// What the style sheet says of an element becomes its attributes, so that the picture needs no style sheet.
const LOOK = { fill: "rgb(0, 0, 0)", stroke: "none", "stroke-width": "1px", "stroke-dasharray": "none", opacity: "1" };
const LETTERS = { "font-size": "", "font-weight": "400", "text-anchor": "start", "paint-order": "normal" };
const NUMBERS = ["x", "y", "x1", "x2", "y1", "y2", "width", "height", "cx", "cy", "d"];
const SPARE = ["class", "style", "role", "tabindex", "aria-label", "aria-selected", "aria-hidden"];

function copied(element) {
  const copy = element.cloneNode(false);
  const computed = getComputedStyle(element);
  const tag = element.localName;
  const kept = { svg: {}, g: {}, clipPath: {}, text: { ...LOOK, ...LETTERS } }[tag] || LOOK;
  for (const name of SPARE) copy.removeAttribute(name);
  for (const [name, usual] of Object.entries(kept)) {
    const value = computed.getPropertyValue(name);
    if (value === usual) copy.removeAttribute(name);
    else copy.setAttribute(name, value);
  }
  if (tag === "text") copy.setAttribute("font-family", "sans-serif");
  for (const name of NUMBERS) if (copy.hasAttribute(name)) copy.setAttribute(name, copy.getAttribute(name).replace(/\d+\.\d+/g, (n) => String(Number(Number(n).toFixed(1)))));
  for (const child of element.childNodes) copy.append(child.nodeType === Node.ELEMENT_NODE ? copied(child) : child.cloneNode());
  return copy;
}

function place(paper, element, x, y, width, height) {
  const copy = copied(element);
  for (const [name, value] of Object.entries({ x, y, width, height })) copy.setAttribute(name, value);
  paper.append(copy);
}

function write(paper, text, x, y) {
  paper.append(svg("text", { x, y, "font-family": "sans-serif", "font-size": 17, "font-weight": 600, fill: "#1b1f24" }, text));
}

function chart(paper, x, y, width, options, content) {
  const one = makeChart({ label: "still", ...options });
  one.element.style.width = `${width}px`;
  document.body.append(one.element);
  one.draw(content);
  place(paper, one.element.querySelector("svg"), x, y, width, options.height);
}

function still(name) {
  const paper = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT }, svg("rect", { width: WIDTH, height: HEIGHT, fill: "#ffffff" }));
  document.body.append(paper);
  DRAWINGS[name](paper);
  return new XMLSerializer().serializeToString(paper);
}
