// A walk over five states, learned forwards and backwards. Nothing here knows of a page. Needs methods.js.
//
//   walk(seed)              {states, rewards}: a walk from the middle that ends beyond either side; a step to the right pays 1
//   features(kind)          one row of features for each state; kind is "tabular", "overlapping" or "random"
//   apart({kind, seed, alpha, gamma, lam}, dutch, correction)   for each step, the largest difference from the weights of the forward view, if true
//                         online TD(λ) goes without its dutch trace, or without its term with V − V_old
//   compare({kind, seed, alpha, gamma, lam})
//     rows                  the triangle of the online λ-return algorithm (methods.js)
//     learners[name].steps  for each step {x, reward, v, vNext, vOld, delta, faded, trace, first, second, weights}: the
//                           numbers, the trace before and after, both terms of the weight change, and the new weights
//     learners[name].apart  for each step, the largest difference from the weights of the forward view
//     learners[name].parted the first step with a difference of more than rounding, or null
"use strict";
globalThis.trueonline = globalThis.trueonline || {};
trueonline.forwardBackward = (() => {
  const { METHODS, Learner, onlineLambdaReturn, random } = trueonline.methods;
  const STATES = ["A", "B", "C", "D", "E"];
  const ROUNDING = 1e-12; // relative to the largest weight

  function walk(seed) {
    const generator = random(seed);
    for (;;) {
      const states = [2];
      const rewards = [];
      while (states.at(-1) >= 0 && states.at(-1) < STATES.length) {
        const right = generator.chance(0.5);
        states.push(states.at(-1) + (right ? 1 : -1));
        rewards.push(right ? 1 : 0);
      }
      if (rewards.length >= 9 && rewards.length <= 12) return { states, rewards }; // long enough to come back, short enough to draw
    }
  }

  function features(kind) {
    if (kind === "tabular") return STATES.map((_, s) => STATES.map((_, i) => (i === s ? 1 : 0)));
    if (kind === "overlapping") return STATES.map((_, s) => Array.from({ length: STATES.length + 1 }, (_, i) => (i === s || i === s + 1 ? 1 : 0)));
    const generator = random(7);
    return STATES.map(() => Array.from({ length: 4 }, () => Math.round(60 * generator.normal()) / 100));
  }

  function compare({ kind, seed, alpha, gamma, lam }) {
    const { states, rewards } = walk(seed);
    const table = features(kind);
    const size = table[0].length;
    const xs = states.map((s) => table[s] || null); // beyond either side there is nothing
    const weights = new Float64Array(size);
    const rows = onlineLambdaReturn({ features: xs, rewards, alpha, gamma, lam, weights, terminal: true });
    const learners = {};
    for (const name of Object.keys(METHODS)) if (name !== "replace" || kind !== "random") learners[name] = steps(name, xs, rewards, { alpha, gamma, lam }, rows);
    return { states, rewards, xs, size, rows, learners };
  }

  function steps(name, xs, rewards, settings, rows) {
    const learner = new Learner(name, xs[0].length, settings);
    const { alpha } = settings;
    const taken = [];
    const apart = [];
    let parted = null;
    rewards.forEach((reward, t) => {
      const x = xs[t];
      const faded = learner.e.slice();
      const step = learner.update(x, reward, xs[t + 1]);
      const correction = name === "true_online" ? step.v - step.vOld : 0;
      const trace = learner.e.slice();
      taken.push({ x, reward, ...step, faded, trace, weights: learner.w.slice(),
        first: trace.map((e) => alpha * step.delta * e),
        second: trace.map((e, i) => alpha * correction * (e - x[i])) });
      const exact = rows[t].weights;
      apart.push(Math.max(...exact.map((w, i) => Math.abs(w - learner.w[i]))));
      const size = Math.max(1, ...exact.map(Math.abs));
      if (parted === null && apart[t] > ROUNDING * size) parted = t + 1;
    });
    return { steps: taken, apart, parted };
  }

  // The same arithmetic as in methods.js, but that either term may be left out.
  function apart(settings, dutch, correction) {
    const { xs, rewards, rows, size } = compare(settings);
    const { alpha, gamma, lam } = settings;
    const [w, e] = [new Float64Array(size), new Float64Array(size)];
    const value = (x) => (x ? x.reduce((sum, xi, i) => sum + xi * w[i], 0) : 0);
    let vOld = value(xs[0]);
    return rewards.map((reward, t) => {
      const x = xs[t];
      const [v, vNext] = [value(x), value(xs[t + 1])];
      const along = dutch ? alpha * gamma * lam * x.reduce((sum, xi, i) => sum + xi * e[i], 0) : 0;
      const moved = correction ? v - vOld : 0;
      for (let i = 0; i < size; i++) {
        e[i] = gamma * lam * e[i] + (1 - along) * x[i];
        w[i] += alpha * ((reward + gamma * vNext - v + moved) * e[i] - moved * x[i]);
      }
      vOld = vNext;
      return { apart: Math.max(...rows[t].weights.map((exact, i) => Math.abs(exact - w[i]))), weights: w.slice() };
    });
  }

  return { STATES, walk, features, compare, apart };
})();
