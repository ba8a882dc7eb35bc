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

  random_walk(paper) {
    const { Walk, Surface } = trueonline.walk;
    const surface = new Surface({ walk: new Walk(19, "one"), methods: Object.keys(METHODS), seed: 1 });
    surface.advance(1, () => 0, 10);
    write(paper, "error of the guesses for every α and λ, on a walk of 19 states", 20, 40);
    const alphas = surface.alphas.filter((_, a) => a % 2);
    ALL.forEach(({ name, title }, i) => {
      const map = trueonline.randomWalk.heatMap({ name, alphas, lams: surface.lams });
      const picture = map.element.querySelector(".map");
      picture.style.width = "262px";
      document.body.append(map.element);
      map.draw((a, l) => surface.mean(name, 2 * a + 1, l), { a: -9, l: 0 }); // no cell is chosen
      place(paper, picture, 4 + 264 * i, 110, 262, picture.viewBox.baseVal.height);
      write(paper, title, 54 + 264 * i, 98);
    });
    write(paper, "bright: small error; dark: 0.7 or more; hatched: above 1; ring: the best", 20, 420);
  },

  off_policy(paper) {
    const { METHODS: OFF, TASKS, walk, errors } = trueonline.offPolicy;
    const found = errors(TASKS.baird, walk(TASKS.baird, { seed: 1, steps: 1000, agrees: 1 / 7 }), { alpha: 0.005, beta: 0.05, lam: 0 });
    chart(paper, 10, 15, 765, { height: 425, x: { label: "time step", min: 0, max: 1000 }, y: { label: "error of the values on Baird’s task", log: true, min: 0.1, max: 1000 } }, {
      series: Object.values(OFF).filter((m) => m.name !== "provisional").map((m) => ({ ...m, width: 2.5, points: found[m.name].map((step, t) => [t, step.error]).filter(([t]) => t % 5 === 0) })),
      marks: [["td", 400, 300], ["emphatic", 600, 15], ["gtd", 400, 0.35]].map(([name, x, y]) => ({ ...OFF[name], x, y, label: OFF[name].title })),
    });
  },

  step_sizes(paper) {
    const { adaptive } = trueonline.stepSizes.compare({ seed: 1, steps: 4000, alpha: 0.003, large: 10, outlier: 0, theta: 0.1 });
    const sensors = [["first sensor", "true_online", 1, 400, 0.035], ["second sensor, in units of 10", "replace", 100, 1500, 0.028], ["third sensor, noise", "accumulate", 1, 1500, 0.0035]];
    chart(paper, 10, 15, 765, { height: 425, x: { label: "time step", min: 0, max: 4000 }, y: { label: "step-size, in each sensor’s own units", log: true, min: 0.003, max: 0.05 } }, {
      series: sensors.map(([, look, unit], i) => ({ ...METHODS[look], width: 2.5, points: adaptive.stepSizes.map((sizes, t) => [t + 1, sizes[i] * unit]).filter(([t]) => t % 20 === 0) })),
      marks: sensors.map(([label, look, , x, y]) => ({ ...METHODS[look], x, y, label })),
    });
  },

  memory(paper) {
    const { OwedMemory, EagerMemory, Learner, MovingPoint } = trueonline.memory;
    const [n, columns, cell, shown] = [256, 32, 11.5, 30];
    const stream = new MovingPoint({ n, active: 8, random: trueonline.methods.random(5).uniform });
    const [eager, owed] = [EagerMemory, OwedMemory].map((kind) => new Learner("true_online", new kind(n), { alpha: 0.06, gamma: 0.99, lam: 0.9 }));
    for (const learner of [eager, owed]) Object.assign(learner, { here: stream.features(), gammaHere: 0.99 });
    const visits = { eager: [], owed: [] };
    for (let t = 1; t <= 100; t++) {
      const [active, reward, next] = [new Set(owed.here.indices), stream.move(), stream.features()];
      for (const [name, learner] of Object.entries({ eager, owed })) {
        const before = learner.memory.visits;
        learner.step(reward, next);
        visits[name].push([t, learner.memory.visits - before]);
      }
      if (t === shown) {
        squares(20, (i) => (eager.memory.e[i] ? "#d55e00" : "#f7dfcc"));
        squares(414, (i) => (active.has(i) ? "#009e73" : owed.memory.trace(i) ? "#f4d9a0" : "#e9ecef"));
      }
    }
    function squares(left, colour) {
      for (let i = 0, end; i < n; i = end) { // neighbours of one colour
        for (end = i + 1; end % columns && colour(end) === colour(i);) end++;
        paper.append(svg("rect", { x: left + (i % columns) * cell, y: 56 + Math.floor(i / columns) * cell, width: (end - i) * cell, height: cell, fill: colour(i) }));
      }
      const lines = Array.from({ length: columns + 1 }, (_, k) => `M${left + k * cell} 56v92`).concat(Array.from({ length: 9 }, (_, k) => `M${left} ${56 + k * cell}h368`));
      paper.append(svg("path", { d: lines.join(""), stroke: "#ffffff" }));
    }
    write(paper, "an eager loop touches 256 weights", 20, 36);
    write(paper, "the memory touches 8", 414, 36);
    chart(paper, 10, 168, 780, { height: 270, x: { label: "step", min: 0, max: 100 }, y: { label: "entries visited in a step", log: true, min: 10, max: 1000, ticks: [10, 30, 100, 300, 1000] } }, {
      series: [{ points: visits.eager, colour: "var(--accumulate)", dashes: "6 2" }, { points: visits.owed, colour: "var(--true-online)" }],
      marks: [{ x: 4, y: 400, label: "eager loop", colour: "var(--accumulate)", marker: "square" }, { x: 4, y: 36, label: "memory; the peaks are rebases", colour: "var(--true-online)" }],
    });
  },
};

// What the style sheet says of an element becomes its attributes, so that the picture needs no style sheet.
const LOOK = { fill: "rgb(0, 0, 0)", stroke: "none", "stroke-width": "1px", "stroke-dasharray": "none", opacity: "1" };
const LETTERS = { "font-size": "", "font-weight": "400", "text-anchor": "start", "paint-order": "normal" };
const NUMBERS = ["x", "y", "x1", "x2", "y1", "y2", "width", "height", "cx", "cy", "d"];
const SPARE = ["class", "style", "role", "tabindex", "aria-label", "aria-selected", "aria-hidden", "aria-activedescendant"];

function copied(element) {
  const copy = element.cloneNode(false);
  const computed = getComputedStyle(element);
  const tag = element.localName;
  const kept = { svg: {}, g: {}, clipPath: {}, text: { ...LOOK, ...LETTERS } }[tag] || LOOK;
  for (const name of SPARE) copy.removeAttribute(name);
  if (tag === "g") copy.removeAttribute("id");
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
  one.element.querySelector("svg").setAttribute("overflow", "visible"); // for the last label of the x axis
  place(paper, one.element.querySelector("svg"), x, y, width, options.height);
}

function still(name) {
  const paper = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT }, svg("rect", { width: WIDTH, height: HEIGHT, fill: "#ffffff" }));
  document.body.append(paper);
  DRAWINGS[name](paper);
  return new XMLSerializer().serializeToString(paper);
}
