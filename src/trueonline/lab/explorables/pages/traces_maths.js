// The traces of one feature, and the one-state example. Nothing here knows of a page. Needs methods.js.
//
//   visitTraces(visits, {alpha, fade})       the three traces after each step; visits is an array of true and false
//   pattern(kind, length, {every, seed})     visits: "always", "every" n-th, "random"
//   moves(method, visits, alpha)             where a guess of 0 stands after each of the moves towards an outcome of 1
//   oneState({alpha, lam, ending, seed, steps})   values and traces of the three methods, step by step
//   growth(method, {alpha, lam, ending})     {meanSquare, overshoot}: what an episode does to the squared error, on average
//   limit(method, {lam, ending})             the step-size above which the mean squared error grows (dutch: Infinity up to α = 1)
"use strict";
globalThis.trueonline = globalThis.trueonline || {};
trueonline.traces = (() => {
  const { METHODS, Learner, random } = trueonline.methods;
  const NAMES = Object.keys(METHODS);

  function visitTraces(visits, { alpha, fade }) {
    const traces = {};
    for (const name of NAMES) {
      const learner = new Learner(name, 1, { alpha, gamma: fade, lam: 1 });
      traces[name] = visits.map((seen) => {
        learner.update([seen ? 1 : 0], 0, [0]);
        return learner.e[0];
      });
    }
    return traces;
  }

  function pattern(kind, length, { every = 3, seed = 1 } = {}) {
    const generator = random(seed);
    const seen = { always: () => true, every: (t) => t % every === 0, random: () => generator.chance(0.35), once: (t) => t === 0 }[kind];
    return Array.from({ length }, (_, t) => seen(t));
  }

  // Without fading, a learner goes the part α·e of the way when the outcome comes. These are the single moves in it.
  function moves(method, visits, alpha) {
    if (method === "replace") return [0, alpha];
    const places = [0];
    for (let n = 0; n < visits; n++) places.push(places[n] + alpha * (method === "accumulate" ? 1 : 1 - places[n]));
    return places;
  }

  // An episode ends with probability `ending` at each step, and the end pays 1. γ = 1, and the feature is always 1.
  function oneState({ alpha, lam, ending, seed, steps }) {
    const generator = random(seed);
    const ends = Array.from({ length: steps }, () => generator.chance(ending));
    const runs = {};
    for (const name of NAMES) {
      const learner = new Learner(name, 1, { alpha, gamma: 1, lam });
      const [traces, values] = [[], []];
      for (const end of ends) {
        learner.update([1], end ? 1 : 0, end ? null : [1]);
        traces.push(learner.e[0]);
        values.push(learner.w[0]);
      }
      runs[name] = { traces, values };
    }
    return { ends, runs };
  }

  // The trace at the end of an episode of 1, 2, … steps, with the probability of that length, until the rest is negligible.
  function* lastTraces(method, { alpha, lam, ending }) {
    let trace = 0;
    let probability = ending;
    for (let length = 1; probability * length ** 2 > 1e-18 * ending; length++) {
      trace = method === "replace" ? 1 : method === "accumulate" ? lam * trace + 1 : (1 - alpha) * lam * trace + 1;
      yield { trace, probability, length };
      probability *= 1 - ending;
    }
  }

  function growth(method, { alpha, lam, ending }) {
    let meanSquare = 0;
    let overshoot = 0;
    for (const { trace, probability } of lastTraces(method, { alpha, lam, ending })) {
      meanSquare += probability * (1 - alpha * trace) ** 2;
      if (alpha * trace > 1 + 1e-12) overshoot += probability;
    }
    return { meanSquare, overshoot };
  }

  // E(1 − αe)² = 1 − 2αE(e) + α²E(e²) exceeds 1 when α > 2E(e)/E(e²), if the trace does not depend on α.
  function limit(method, { lam, ending }) {
    if (method === "true_online") return Infinity;
    let [mean, square] = [0, 0];
    for (const { trace, probability } of lastTraces(method, { alpha: 0, lam, ending })) {
      mean += probability * trace;
      square += probability * trace * trace;
    }
    return (2 * mean) / square;
  }

  return { visitTraces, pattern, moves, oneState, growth, limit };
})();
