// The page on step-sizes: those of three sensors over time, and the error beside that of a fixed step-size.
"use strict";
(() => {
  const { compare } = trueonline.stepSizes;
  const { h, slider, choice, button, player, legend, chart, format, hash } = trueonline.widgets;
  const STEPS = 4000;
  const SENSORS = [
    { name: "first sensor", colour: "var(--true-online)", dashes: "", marker: "circle" },
    { name: "second sensor, in other units", colour: "var(--replace)", dashes: "6 2", marker: "square" },
    { name: "third sensor, noise", colour: "var(--accumulate)", dashes: "2 2", marker: "triangle" },
  ];
  const LEARNERS = { adaptive: { name: "adaptive", colour: "var(--true-online)", dashes: "", marker: "circle" }, fixed: { name: "fixed", colour: "var(--grey)", dashes: "6 2", marker: "square" } };
  const WINDOW = 50; // steps over which errors are averaged

  const figure = document.getElementById("play");
  let seed = 1;
  let t = STEPS / 4;
  let result;

  const large = choice({ label: "Units of the second sensor", value: "10", onChange: () => renew(), options: ["1", "10", "30"].map((value) => ({ value, label: `× ${value}` })) });
  const outlier = choice({ label: "Outlier in the middle", value: "100", onChange: () => renew(), options: ["0", "10", "100", "1000"].map((value) => ({ value, label: value === "0" ? "none" : value })) });
  const alpha = slider({ label: "fixed step-size α", min: -4, max: -0.5, step: 0.1, value: -2.5, format: (v) => format(10 ** v, 2), onInput: () => renew() });
  const theta = slider({ label: "meta step-size θ", min: 0, max: 0.3, step: 0.01, value: 0.1, format: (v) => v.toFixed(2), onInput: () => renew() });
  const another = button({ label: "Another stream", onClick: () => { seed += 1; renew(); } });
  const play = player({ figure, rate: 400, extra: [another.element], forward: () => { t = Math.min(t + 1, STEPS); later(); return t < STEPS; }, restart: () => { t = 0; later(); } });

  const sizes = chart({ title: ["Step-sizes of the adaptive learner ", h("span", { class: "hint" }, "in each sensor’s own units")], label: "The step-size of each sensor over time", height: 260,
    x: { label: "time step", min: 0, max: STEPS, ticks: [0, 1000, 2000, 3000] }, y: { label: "step-size", log: true, min: 0.001, max: 0.1 },
    readout: (x) => at(x, (k) => SENSORS.map((s, i) => `${s.name}: ${format(size(k, i))}`)) });
  const errors = chart({ title: ["Error of the weights ", h("span", { class: "hint" }, `mean of ${WINDOW} steps; above the chart is above 100`)], label: "The error of both learners over time", height: 240,
    x: { label: "time step", min: 0, max: STEPS, ticks: [0, 1000, 2000, 3000] }, y: { label: "error", log: true, min: 0.1, max: 100 },
    readout: (x) => at(x, (k) => Object.values(LEARNERS).map((one) => `${one.name}: ${format(averaged(one.name, k))}`)) });
  const at = (x, lines) => { const k = Math.min(Math.max(Math.round(x), 1), t) - 1; return k < 0 ? [] : [`step ${k + 1}`, ...lines(k)]; };
  const size = (k, i) => result.adaptive.stepSizes[k][i] * (i === 1 ? Number(large.value) ** 2 : 1);
  function averaged(name, k) {
    const some = result[name].errors.slice(Math.max(0, k + 1 - WINDOW), k + 1);
    return some.reduce((sum, error) => sum + error, 0) / some.length;
  }

  figure.prepend(h("div", { class: "controls choices" }, large.element, outlier.element), h("div", { class: "controls" }, alpha.element, theta.element), play.element,
    legend(SENSORS), sizes.element, legend(Object.values(LEARNERS)), errors.element);

  function renew() {
    result = compare({ seed, steps: STEPS, alpha: 10 ** alpha.value, large: Number(large.value), outlier: Number(outlier.value), theta: theta.value });
    later();
  }
  let waiting = false;
  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }
  function draw() {
    const places = [];
    for (let k = 0; k < t; k += Math.max(1, Math.floor(t / 300))) places.push(k);
    const lines = Number(outlier.value) ? [{ x: STEPS / 2, label: "outlier" }] : [];
    sizes.draw({ lines, series: SENSORS.map((s, i) => ({ ...s, markers: "last", points: places.map((k) => [k + 1, size(k, i)]) })) });
    const within = (error) => (Number.isFinite(error) ? Math.min(Math.max(error, 0.1), 1000) : 1000);
    errors.draw({ lines, series: Object.values(LEARNERS).map((one) => ({ ...one, markers: "last", points: places.map((k) => [k + 1, within(averaged(one.name, k))]) })) });
    play.show(`step ${t} of ${STEPS}`, { forward: t < STEPS });
  }

  const address = hash({ large, outlier, alpha, theta });
  document.addEventListener("change", address.save);
  renew();
  play.whenSeen();
})();
