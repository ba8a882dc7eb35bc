// One chart a question: the signal, its prediction, and what came of it.

import { returns } from "./samples.js";
import { axisMarks, clock, fixed, horizonLabel } from "./words.js";

const COMPLETE = 0.01; // a return is known when this little of its weight is still to come …
const SO_FAR = 0.6; // … and is shown as it is so far when this much is

// Seconds between the marks of the time axis: what reads well, in seconds, minutes and hours.
const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

export class Chart {
  // `number` is that of the question. `pick(from, to)` is called when a stretch of time is chosen, `reset()` to go back.
  constructor(number, question, signalNumbers, { pick, reset }) {
    Object.assign(this, { number, question, pick, reset });
    this.target = signalNumbers.get(question.target);
    this.discount = typeof question.discount === "string" ? signalNumbers.get(question.discount) : question.discount;
    this.isSignal = typeof question.discount === "string";
    // Multiplied by 1 − γ, a return is a weighted mean of the signal and has its units. Where γ is 1 or a signal, it is a sum.
    this.scale = this.isSignal || question.discount === 1 ? 1 : 1 - question.discount;
    this.raw = this.isSignal || question.discount === 1;
    this.range = [0, 1];
    this.source = null; // the samples drawn
    this.data = [[], [], [], [], []];
    this.element = document.createElement("article");
    this.element.className = "chart";
    this.element.innerHTML = '<div class="head"><h2></h2><span class="horizon"></span><span class="score"></span>'
      + '<span class="values"></span></div><div class="plot" role="img"></div>';
    const [heading, horizon, score, values] = this.element.firstChild.children;
    heading.textContent = question.name;
    const label = horizonLabel(question);
    horizon.textContent = [question.name.includes(label) ? "" : label, question.unit].filter(Boolean).join(" · ");
    this.score = score;
    this.values = ["when", "signal", "prediction", "realised"].map((name) => {
      const span = document.createElement("span");
      span.className = name;
      span.title = { when: "", signal: "signal", prediction: "prediction", realised: "what came" }[name];
      values.append(span);
      return span;
    });
    this.plot = this.element.lastChild;
    this.plot.setAttribute("aria-label", `${question.name}: the signal, its prediction and what came`);
  }

  // Make the plot, with the colours and the size of now.
  build({ width, height, wallClock, rightAxis, colours }) {
    this.uplot?.destroy();
    Object.assign(this, { wallClock, key: [wallClock, rightAxis].join() });
    const steady = [steadyRange(), steadyRange()];
    const axis = { stroke: colours.soft, font: "11px system-ui, sans-serif", grid: { stroke: colours.grid, width: 1 }, ticks: { show: false } };
    const numbers = { ...axis, size: 58, gap: 4, values: (_, ticks, __, ___, step) => axisMarks(ticks, step) };
    // Pixels between two marks of time: less on a phone, where few have room, but not where they have decimals.
    const apart = (_, __, from, to, wide) => (wide < 400 && to - from > 8 ? 54 : 70);
    const scale = this.raw ? "sum" : "y";
    const line = (stroke, width, more = {}) => ({ scale, stroke, width, points: { show: false }, spanGaps: false, ...more });
    const options = {
      width, height, padding: [6, rightAxis ? 0 : 4, 0, 0], legend: { show: false },
      scales: {
        x: { time: wallClock, range: () => this.range },
        y: { range: steady[0] },
        ...(this.raw ? { sum: { range: steady[1] } } : {}),
      },
      axes: [
        { ...axis, size: 24, space: apart, incrs: STEPS, values: (u, ticks, _, __, step) => this.times(u, ticks, step) },
        numbers,
        ...(rightAxis ? [{ ...numbers, scale, side: 1, size: 46, grid: { show: false }, values: this.raw ? numbers.values : () => [] }] : []),
      ],
      series: [
        {},
        line(colours.signal, 1, { scale: "y" }),
        line(colours.realised, 3.5),
        line(colours.realised, 1.5, { dash: [3, 4] }),
        line(colours.prediction, 1.75),
      ],
      cursor: {
        sync: { key: "time", scales: ["x", null] }, points: { size: 6 }, y: false,
        drag: { x: true, y: false, setScale: false, dist: 6 },
        bind: { dblclick: () => () => this.reset() },
      },
      hooks: {
        setSelect: [(u) => {
          if (u.select.width < 6) return;
          this.pick(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        setCursor: [() => this.tell()],
        drawClear: [(u) => this.mark(u, colours.mark)],
      },
    };
    this.uplot = new uPlot(options, this.data, this.plot);
    this.touch();
  }

  // One finger does what the mouse does: it chooses a stretch of time, or points. Up and down still scrolls.
  touch() {
    const over = this.uplot.over;
    let begin = null;
    const at = (event) => Math.min(Math.max(event.touches[0].clientX - over.getBoundingClientRect().left, 0), over.clientWidth);
    over.addEventListener("touchstart", (event) => { begin = event.touches.length === 1 ? at(event) : null; }, { passive: true });
    over.addEventListener("touchmove", (event) => {
      if (begin === null) return;
      const x = at(event);
      this.uplot.setCursor({ left: x, top: 0 });
      this.uplot.setSelect({ left: Math.min(x, begin), width: Math.abs(x - begin), top: 0, height: over.clientHeight }, false);
    }, { passive: true });
    over.addEventListener("touchend", () => {
      const { left, width } = this.uplot.select;
      if (begin !== null && width > 20) this.uplot.setSelect({ left, width, top: 0, height: over.clientHeight }, true);
      else this.uplot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      begin = null;
    });
  }

  resize(width, height) {
    if (this.uplot && (this.uplot.width !== width || this.uplot.height !== height)) this.uplot.setSize({ width, height });
  }

  has(samples) { return samples.ofPrediction.has(this.number); }

  draw(range, following) {
    Object.assign(this, { range, following });
    this.data = this.source ? this.view(this.source, range) : [[], [], [], [], []];
    this.uplot.setData(this.data);
    this.tell();
  }

  // What is to be drawn of some samples, with a gap wherever the stream begins anew.
  view(samples, [from, to]) {
    const first = Math.max(samples.find(from) - 1, Math.max(samples.length - samples.kept, 0));
    const end = Math.min(samples.find(to) + 1, samples.length);
    const signal = samples.columns[samples.ofSignal.get(this.target)];
    const prediction = samples.columns[samples.ofPrediction.get(this.number)];
    const discount = this.isSignal ? samples.columns[samples.ofSignal.get(this.discount)] : this.discount;
    const { G, left, weight } = returns(signal, discount, samples.starts, first, samples.length);
    const x = [], lines = [[], [], [], []];
    const push = (time, ...values) => {
      x.push(time);
      values.forEach((value, k) => lines[k].push(Number.isFinite(value) ? value : null));
    };
    this.begins = [];
    const last = samples.starts.lastIndexOf(1, samples.length - 1); // what was cut off before it will never be known
    for (let i = first; i < end; i++) {
      if (samples.starts[i] && i > first) {
        this.begins.push(samples.times[i]);
        push((samples.times[i - 1] + samples.times[i]) / 2, NaN, NaN, NaN, NaN);
      }
      const j = i - first, known = left[j] <= COMPLETE;
      // So far, a mean is that over what has come; a sum cannot be told.
      const joins = j + 1 < G.length && left[j + 1] > COMPLETE; // so that the two lines meet
      const soFar = !this.raw && i >= last && left[j] <= SO_FAR && (!known || joins) ? G[j] / weight[j] : NaN;
      push(samples.times[i], signal[i], known ? G[j] * this.scale : NaN, soFar, prediction[i] * this.scale);
    }
    return [x, ...lines];
  }

  // What is written at marks of the time axis, unless it would not fit at the right end.
  times(u, ticks, step) {
    const [from, to] = this.range, room = (30 * (to - from) * devicePixelRatio) / u.bbox.width;
    this.marks = ticks.map((tick) => [tick, to - tick > room ? clock(tick, this.wallClock, step) : ""]);
    return this.marks.map(([, words]) => words);
  }

  // Where the stream began anew: dotted.
  mark(u, colour) {
    if (!this.begins?.length || this.begins.length > 40) return;
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    for (const time of this.begins) {
      const at = u.valToPos(time, "x", true);
      if (at < bbox.left || at > bbox.left + bbox.width) continue;
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  // The values under the cursor, or the newest.
  tell() {
    const [x, signal, realised, , prediction] = this.data;
    if (!this.uplot) return;
    const { left, idx } = this.uplot.cursor;
    const pointed = left >= 0 && idx !== null && idx < x.length;
    const at = pointed ? idx : x.length - 1;
    const [when, ...values] = this.values;
    if (!x.length) when.textContent = "";
    else when.textContent = this.following && !pointed ? "newest" : clock(x[at], this.wallClock, 0.1);
    [[signal, "y"], [prediction, this.raw ? "sum" : "y"], [realised, this.raw ? "sum" : "y"]].forEach(([line, scale], k) => {
      const { min, max } = this.uplot.scales[scale];
      values[k].textContent = fixed(line[at], max - min);
    });
  }
}

// A range that grows at once but shrinks only when much of it is empty: the lines should move, not the axis.
function steadyRange() {
  let kept = null;
  return (_, low, high) => {
    if (low === null || high === null || !Number.isFinite(low + high)) return kept ?? [0, 1];
    const room = Math.max((high - low) * 0.1, Math.abs(high) * 1e-3, 1e-9);
    const fits = kept && kept[0] <= low && high <= kept[1] && (high - low + 2 * room) > 0.6 * (kept[1] - kept[0]);
    if (!fits) kept = [low - room, high + room];
    return kept;
  };
}
