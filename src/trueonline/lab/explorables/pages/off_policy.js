// The page on off-policy learning: four methods on a task where TD diverges.
"use strict";
(() => {
  const { METHODS, TASKS, walk, errors } = trueonline.offPolicy;
  const { h, svg, slider, choice, button, player, toggle, chart, format, hash } = trueonline.widgets;
  const ALL = Object.values(METHODS);
  const STEPS = 1500;
  const [LEAST, MOST] = [0.01, 1e4];

  const figure = document.getElementById("play");
  let seed = 1;
  let t = 300;
  let walked, found;

  const task = choice({ label: "Task", value: "baird", onChange: () => { agrees.value = TASKS[task.value].usual; renew(); },
    options: [{ value: "baird", label: "Baird’s seven states" }, { value: "two_state", label: "two states" }] });
  const agrees = slider({ label: "agreement", min: 0.1, max: 1, step: 0.01, value: 0.14, format: (v) => `${Math.round(100 * v)} %`, onInput: () => renew() });
  const alpha = slider({ label: "step-size α", min: 0, max: 0.02, step: 0.0005, value: 0.005, format: (v) => format(v, 3), onInput: () => renew() });
  const beta = slider({ label: "second step-size β", min: 0, max: 0.1, step: 0.005, value: 0.05, format: (v) => format(v, 3), onInput: () => renew() });
  const lam = slider({ label: "trace decay λ", min: 0, max: 1, step: 0.05, value: 0, format: (v) => v.toFixed(2), onInput: () => renew() });
  const shown = Object.fromEntries(ALL.map((m) => [m.name, toggle({ ...m, label: m.title, value: true, onChange: () => draw() })]));
  const another = button({ label: "Another walk", onClick: () => { seed += 1; renew(); } });
  const play = player({ figure, rate: 60, extra: [another.element], forward: () => { goTo(t + 1); return t < STEPS; }, back: () => goTo(t - 1), restart: () => goTo(0) });

  const picture = svg("svg", { viewBox: "0 0 520 132", role: "img", class: "chain" });
  const happened = h("p", { class: "path" });
  const errorChart = chart({ title: ["Error of the values ", h("span", { class: "hint" }, "on a scale where each line is ten times the one below")], label: "Error of the four methods over time", height: 290,
    x: { label: "time step", min: 0, max: STEPS, ticks: [0, 500, 1000] }, y: { label: "RMS error", log: true, min: LEAST, max: MOST, ticks: [0.01, 0.1, 1, 10, 100, 1000, 1e4] },
    readout: (x) => { const at = Math.min(Math.max(Math.round(x), 0), t); return [`step ${at}`, ...visible().map((m) => `${m.title}: ${format(found[m.name][at].error)}`)]; } });
  const chase = chart({ title: ["The chase of off-policy TD ", h("span", { class: "hint" }, "solid: its goal, γ times the value of the lower (last) state; dashed: the mean value of the others")], label: "The goal runs ahead of the values that follow it", height: 200,
    x: { label: "time step", min: 0, max: STEPS, ticks: [0, 500, 1000] }, y: { label: "value" } });

  figure.prepend(h("div", { class: "controls choices" }, task.element), h("div", { class: "controls" }, agrees.element, alpha.element, lam.element, beta.element), play.element, picture, happened,
    h("div", { class: "toggles", role: "group", "aria-label": "Methods" }, ALL.map((m) => shown[m.name].element)), errorChart.element, chase.element);

  const visible = () => ALL.filter((m) => shown[m.name].value);

  function renew() {
    const here = TASKS[task.value];
    walked = walk(here, { seed, steps: STEPS, agrees: agrees.value });
    found = errors(here, walked, { alpha: alpha.value, beta: beta.value, lam: lam.value });
    draw();
  }
  function goTo(to) {
    t = Math.min(Math.max(to, 0), STEPS);
    draw();
  }

  function draw() {
    drawStates();
    const every = Math.max(1, Math.floor(t / 400));
    const kept = (points) => points.slice(0, t + 1).map((point, k) => [k, point]).filter(([k]) => k % every === 0 || k === t);
    const within = (error) => Math.min(Math.max(error, LEAST / 10), MOST * 10);
    errorChart.draw({ series: visible().map((m) => ({ ...m, markers: "last", points: kept(found[m.name]).map(([k, point]) => [k, within(point.error)]) })) });
    const { features, gamma } = TASKS[task.value];
    const value = (x, w) => x.reduce((sum, xi, i) => sum + xi * w[i], 0);
    const others = features.slice(0, -1);
    const [goal, mean] = [(w) => gamma * value(features.at(-1), w), (w) => others.reduce((sum, x) => sum + value(x, w), 0) / others.length];
    const lines = [goal, mean].map((of) => kept(found.td).map(([k, point]) => [k, of(point.weights)]));
    const all = lines.flat().map(([, v]) => v).filter(Number.isFinite);
    chase.draw({ y: { label: "value", min: Math.min(0, ...all), max: Math.max(1, ...all) * 1.05 },
      series: [{ points: lines[0], colour: "var(--ink)", width: 2 }, { points: lines[1], colour: "var(--accumulate)", dashes: "6 2", width: 2 }] });
    play.show(`step ${t} of ${STEPS}`, { back: t > 0, forward: t < STEPS });
  }

  function drawStates() {
    const { features } = TASKS[task.value];
    const last = features.length - 1;
    const baird = last > 1;
    const [from, to] = [t > 0 ? walked.states[t - 1] : null, walked.states[t]];
    const at = (s) => (s === last ? (baird ? [260, 104] : [360, 66]) : baird ? [60 + 80 * s, 26] : [160, 66]);
    const name = (s) => (baird ? String(s + 1) : s === last ? "2w" : "w");
    const parts = features.map((_, s) => s).filter((s) => s !== last).map((s) => svg("line", { x1: at(s)[0], y1: at(s)[1], x2: at(last)[0], y2: at(last)[1], class: "way" }));
    if (from !== null && from !== to) parts.push(svg("line", { x1: at(from)[0], y1: at(from)[1], x2: at(to)[0], y2: at(to)[1], "stroke-width": 3, style: { stroke: "var(--accent)" } }));
    features.forEach((_, s) => parts.push(svg("circle", { cx: at(s)[0], cy: at(s)[1], r: 20, class: s === to ? "here" : "" }), svg("text", { x: at(s)[0], y: at(s)[1] + 5, "text-anchor": "middle", class: "name" }, name(s))));
    picture.replaceChildren(...parts);
    picture.setAttribute("aria-label", `The walk is in state ${name(to)}.`);
    const ratio = t > 0 ? walked.ratios[t - 1] : null;
    happened.textContent = ratio === null ? "The walk begins." : ratio === 0 ? `From state ${name(from)} to ${name(to)}. The target policy would not have done this: ρ = 0.` : `From state ${name(from)} to ${name(to)}, as the target policy would: ρ = ${format(ratio, 3)}.`;
  }

  const address = hash({ task, agrees, alpha, beta, lambda: lam, ...shown });
  document.addEventListener("change", address.save);
  renew();
  play.whenSeen();
})();
