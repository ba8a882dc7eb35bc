// Off-policy methods on two counterexamples. Nothing here knows of a page. Needs methods.js.
//
//   TASKS.baird, TASKS.two_state   {features, gamma, weights, usual}: one row of features for each state, the first weights, and how often the
//                                  behaviour usually does what the target policy does
//   walk(task, {seed, steps, agrees})  {states, ratios}: the behaviour does what the target policy does with probability `agrees`
//   METHODS.td                     {name, title, colour, dashes, marker}
//   new Learner("gtd", weights, {alpha, beta, gamma, lam}).update(x, reward, xNext, ratio)  .w: the weights
//   errors(task, walked, settings) for each method the RMS error of all values after 0, 1, … steps. All true values are 0.
"use strict";
globalThis.trueonline = globalThis.trueonline || {};
trueonline.offPolicy = (() => {
  const { dot, random } = trueonline.methods;

  const METHODS = {
    td: { name: "td", title: "off-policy TD(λ)", colour: "var(--accumulate)", dashes: "6 2", marker: "square" },
    gtd: { name: "gtd", title: "GTD(λ)", colour: "var(--replace)", dashes: "4 2", marker: "circle" },
    emphatic: { name: "emphatic", title: "emphatic TD(λ)", colour: "var(--true-online)", dashes: "", marker: "diamond" },
    provisional: { name: "provisional", title: "provisional TD(λ)", colour: "var(--pink)", dashes: "2 2", marker: "triangle" },
  };

  // Baird: six upper states with the values 2w_i + w_8, and a lower one with w_7 + 2w_8. The target policy always goes to the lower one.
  const upper = (s) => Array.from({ length: 8 }, (_, i) => (i === s ? 2 : i === 7 ? 1 : 0));
  const TASKS = {
    baird: { features: [...Array.from({ length: 6 }, (_, s) => upper(s)), [0, 0, 0, 0, 0, 0, 1, 2]], gamma: 0.99, weights: [1, 1, 1, 1, 1, 1, 10, 1], usual: 1 / 7 },
    two_state: { features: [[1], [2]], gamma: 0.9, weights: [1], usual: 0.5 },
  };

  function walk(task, { seed, steps, agrees }) {
    const generator = random(seed);
    const last = task.features.length - 1;
    const [states, ratios] = [[0], []];
    for (let t = 0; t < steps; t++) {
      const same = generator.chance(agrees);
      ratios.push(same ? 1 / agrees : 0);
      states.push(same ? last : generator.integer(last));
    }
    return { states, ratios };
  }

  class Learner {
    constructor(method, weights, { alpha, beta = 0, gamma, lam }) {
      if (!(method in METHODS)) throw new Error(`no method is called ${method}: take ${Object.keys(METHODS).join(", ")}`);
      Object.assign(this, { method, alpha, beta, gamma, lam });
      this.w = Float64Array.from(weights);
      for (const name of ["e", "h", "u"]) this[name] = new Float64Array(weights.length); // trace, second weights, provisional weights
      this.followOn = 0;
      this.ratioBefore = 0;
      this.first = true;
    }

    update(x, reward, xNext, ratio) {
      const { w, e, h, u, alpha, beta, gamma, lam, method } = this;
      const n = w.length;
      const decay = this.first ? 0 : ratio * gamma * lam;
      const vNext = dot(w, xNext);
      const delta = reward + gamma * vNext - dot(w, x);
      if (method === "provisional") {
        const undone = this.first ? 0 : (ratio - 1) * gamma * lam;
        const carried = delta + (1 - gamma) * vNext;
        for (let i = 0; i < n; i++) {
          w[i] += undone * u[i];
          e[i] = decay * e[i] + alpha * ratio * x[i];
          w[i] += delta * e[i];
          u[i] = decay * u[i] + carried * e[i];
        }
      } else {
        this.followOn = this.first ? 1 : this.ratioBefore * gamma * this.followOn + 1;
        const emphasis = method === "emphatic" && !this.first ? lam + (1 - lam) * this.followOn : 1;
        for (let i = 0; i < n; i++) e[i] = decay * e[i] + ratio * emphasis * x[i];
        const correction = method === "gtd" ? alpha * gamma * (1 - lam) * dot(h, e) : 0;
        const hx = dot(h, x);
        for (let i = 0; i < n; i++) {
          w[i] += alpha * delta * e[i] - correction * xNext[i];
          h[i] += beta * (delta * e[i] - hx * x[i]);
        }
      }
      this.ratioBefore = ratio;
      this.first = false;
      return delta;
    }
  }

  const error = (task, w) => Math.sqrt(task.features.reduce((sum, x) => sum + dot(w, x) ** 2, 0) / task.features.length);

  function errors(task, { states, ratios }, settings) {
    const found = {};
    for (const name of Object.keys(METHODS)) {
      const learner = new Learner(name, task.weights, { gamma: task.gamma, ...settings });
      const taken = [{ error: error(task, learner.w), weights: learner.w.slice() }];
      ratios.forEach((ratio, t) => {
        learner.update(task.features[states[t]], 0, task.features[states[t + 1]], ratio);
        taken.push({ error: error(task, learner.w), weights: learner.w.slice() });
      });
      found[name] = taken;
    }
    return found;
  }

  return { METHODS, TASKS, Learner, walk, errors, error };
})();
