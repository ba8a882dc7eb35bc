// True online TD(λ) with a step-size for each feature. Nothing here knows of a page. Needs methods.js.
//
//   new Adaptive(size, {alpha, gamma, lam, bound, theta})   .w, .stepSizes, .update(x, reward, xNext): xNext null ends the episode
//   stream({seed, steps, large, outlier})    {features, rewards}: three sensors, of which the third shows noise, and one wild reward
//   compare({seed, steps, alpha, large, outlier, theta})    {adaptive, fixed}: of both learners the errors of the weights over time, and the
//                                            step-sizes of the first
"use strict";
globalThis.trueonline = globalThis.trueonline || {};
trueonline.stepSizes = (() => {
  const { Learner, dot, random } = trueonline.methods;
  const TAU = 1e4; // for how many errors, or visits, the largest is remembered
  const FAIR = 300; // how many times its fair share of the bound one feature may use
  const LOWER = 0.1; // how fast step-sizes above the bound fall, as a part of θ

  class Adaptive {
    constructor(size, { alpha = 0.1, gamma = 0, lam = 0, bound = 0.1, theta = 0.1 }) {
      Object.assign(this, { alpha, gamma, lam, bound, theta, largest: 0, vOld: 0, ended: true });
      for (const name of ["w", "e", "logs", "p", "usual", "slope"]) this[name] = new Float64Array(size); // logs: ln r; slope: H
    }

    get stepSizes() {
      return this.logs.map((log) => this.alpha * Math.exp(log));
    }

    update(x, reward, xNext) {
      const { w, e, logs, p, usual, slope, alpha, bound, theta } = this;
      const n = w.length;
      const decay = this.ended ? 0 : this.gamma * this.lam;
      const v = dot(w, x);
      const vNext = xNext ? dot(w, xNext) : 0;
      const delta = reward + (xNext ? this.gamma : 0) * vNext - v;
      const vOld = this.ended ? v : this.vOld;

      // No feature uses more than the bound, nor many times its fair share of it.
      const squares = dot(x, x);
      const r = new Float64Array(n);
      let sum = 0;
      for (let i = 0; i < n; i++) {
        if (x[i] === 0) continue;
        logs[i] = Math.min(logs[i], Math.log((bound / alpha) * Math.min(FAIR / squares, 1 / (x[i] * x[i]))));
        r[i] = Math.exp(logs[i]);
        sum += r[i] * x[i] * x[i];
      }

      // The step-sizes follow the gradient of the squared error. No error moves one of them far.
      const excess = alpha * sum > bound ? Math.log((alpha * sum) / bound) : 0;
      const before = this.largest;
      this.largest = Math.max(Math.abs(delta), before + (Math.abs(delta) - before) / TAU);
      for (let i = 0; i < n; i++) {
        p[i] *= decay;
        if (x[i] === 0) continue;
        const gain = x[i] * slope[i];
        usual[i] = Math.max(Math.abs(gain), usual[i] + (alpha / TAU) * r[i] * x[i] * x[i] * (Math.abs(gain) - usual[i]));
        if (usual[i] > 0) p[i] += gain / usual[i];
        logs[i] -= LOWER * theta * excess;
      }
      const within = before > 0 ? Math.min(Math.max(delta, -before), before) : delta;
      if (this.largest > 0) for (let i = 0; i < n; i++) logs[i] += theta * (within / this.largest) * p[i];

      // True online TD(λ), with α r_i in place of α. The trace carries the step-size.
      const step = alpha * sum > bound ? bound / sum : alpha;
      const dutch = 1 - decay * dot(e, x);
      for (let i = 0; i < n; i++) {
        const part = step * r[i] * x[i];
        const old = w[i];
        e[i] = decay * e[i] + dutch * part;
        w[i] += (delta + v - vOld) * e[i] - (v - vOld) * part;
        slope[i] = slope[i] * (1 - Math.min(1, x[i] * e[i])) + w[i] - old;
      }
      this.vOld = vNext;
      this.ended = !xNext;
      return delta;
    }
  }

  // What the reward is made of, in the sensors' own units: two parts that turn over time, and nothing of the third sensor.
  const PERIOD = 2000;
  const truth = (t) => [Math.cos((2 * Math.PI * t) / PERIOD), Math.sin((2 * Math.PI * t) / PERIOD), 0];

  function stream({ seed, steps, large, outlier }) {
    const generator = random(seed);
    const [features, rewards] = [[], []];
    for (let t = 0; t < steps; t++) {
      const signals = truth(t).map(() => generator.normal());
      features.push([signals[0], large * signals[1], signals[2]]);
      rewards.push(dot(truth(t), signals) + 0.5 * generator.normal());
    }
    if (outlier > 0) rewards[Math.floor(steps / 2)] += outlier;
    return { features, rewards };
  }

  function compare({ seed, steps, alpha, large, outlier, theta }) {
    const { features, rewards } = stream({ seed, steps, large, outlier });
    const adaptive = { learner: new Adaptive(3, { theta }), errors: [], stepSizes: [] };
    const fixed = { learner: new Learner("true_online", 3, { alpha, gamma: 0 }), errors: [] };
    const units = [1, large, 1];
    features.forEach((x, t) => {
      for (const one of [adaptive, fixed]) {
        one.learner.update(x, rewards[t], [0, 0, 0]);
        one.errors.push(Math.sqrt(truth(t).reduce((sum, w, i) => sum + (one.learner.w[i] * units[i] - w) ** 2, 0)));
      }
      adaptive.stepSizes.push(Array.from(adaptive.learner.stepSizes));
    });
    return { adaptive, fixed };
  }

  return { Adaptive, stream, compare };
})();
