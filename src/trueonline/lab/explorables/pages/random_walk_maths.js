// The random walk of Sutton and Barto's book, and learning on it.
//
//   const { ALPHAS, LAMBDAS, Walk, Surface, rmsError, step, learn, learnerOn, errorOf } = trueonline.walk;
//
//   new Walk(states, kind)         .values, .start, .features(state), .episode(generator), .value(memory, state). The kind is "one"
//                                  (a feature for each state) or "overlapping" (a feature for each few neighbours)
//   learnerOn(walk, method, α, λ)  a learner at the beginning
//   step(walk, learner, episode, t), learn(walk, learner, episode)   one step of an episode, or all of them
//   rmsError(walk, memory)         root mean square of the error over all states
//   new Surface({walk, methods, episodes, seed})   errors for every α and λ, averaged over more and more runs:
//     .advance(deadline, clock, runs), .mean(method, place of α, place of λ), .runs
//
// Needs methods.js (random numbers) and memory_maths.js (learners). Nothing here knows of a page.
"use strict";
globalThis.trueonline = globalThis.trueonline || {};
trueonline.walk = (() => {
  const { random } = trueonline.methods;
  const { OwedMemory, Learner } = trueonline.memory;

  // The grid of the surface. Each α is divided by the number of active features.
  const ALPHAS = Array.from({ length: 20 }, (_, k) => (k + 1) / 20);
  const LAMBDAS = [0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.975, 0.99, 1];
  const NEIGHBOURS = { 5: 2, 19: 4, 100: 5 };
  const HOPELESS = 1e6; // an error above this is given up, and counts as infinite
  const NOWHERE = { indices: new Int32Array(0), values: null };

  class Walk {
    constructor(states, kind) {
      this.states = states;
      this.kind = kind;
      this.start = Math.floor(states / 2);
      this.left = states === 5 ? 0 : -1; // the rewards at the ends, as in the book
      this.right = 1;
      this.active = kind === "one" ? 1 : NEIGHBOURS[states];
      this.size = states + this.active - 1;
      this.values = Array.from({ length: states }, (_, s) => this.left + ((this.right - this.left) * (s + 1)) / (states + 1));
      // Feature j is active in the states j − active + 1, …, j.
      this.table = this.values.map((_, s) => ({ indices: Int32Array.from({ length: this.active }, (_, j) => s + j), values: null }));
    }

    features(state) {
      return this.table[state];
    }

    // The states of one episode, and the reward at its end.
    episode(generator) {
      const visited = [];
      let state = this.start;
      while (state >= 0 && state < this.states) {
        visited.push(state);
        state += generator.uniform() < 0.5 ? -1 : 1;
      }
      return { visited, reward: state < 0 ? this.left : this.right };
    }

    value(memory, state) {
      let v = 0;
      for (const i of this.table[state].indices) v += memory.weight(i);
      return v;
    }
  }

  function rmsError(walk, memory) {
    let sum = 0;
    for (let s = 0; s < walk.states; s++) sum += (walk.value(memory, s) - walk.values[s]) ** 2;
    return Math.sqrt(sum / walk.states);
  }

  // Step t of an episode.
  function step(walk, learner, { visited, reward }, t) {
    if (t === 0) learner.start(walk.features(visited[0]));
    if (t + 1 < visited.length) learner.step(0, walk.features(visited[t + 1]), 1);
    else learner.step(reward, NOWHERE, 0);
  }

  function learn(walk, learner, episode) {
    for (let t = 0; t < episode.visited.length; t++) step(walk, learner, episode, t);
  }

  const learnerOn = (walk, method, alpha, lam) => new Learner(method, new OwedMemory(walk.size), { alpha, gamma: 1, lam });

  // The error at the end of each episode, averaged over the episodes.
  function errorOf(walk, method, alpha, lam, episodes) {
    const learner = learnerOn(walk, method, alpha, lam);
    let sum = 0;
    for (const episode of episodes) {
      learn(walk, learner, episode);
      const error = rmsError(walk, learner.memory);
      if (!(error < HOPELESS)) return Infinity;
      sum += error;
    }
    return sum / episodes.length;
  }

  // Errors averaged over more and more runs. All methods, α and λ of a run see the same walk; run r has the seed `seed` + r.
  class Surface {
    constructor({ walk, methods, episodes = 10, seed }) {
      this.walk = walk;
      this.methods = methods;
      this.episodes = episodes;
      this.seed = seed;
      this.alphas = ALPHAS.map((alpha) => alpha / walk.active);
      this.lams = LAMBDAS;
      this.cells = this.alphas.length * this.lams.length;
      this.sums = Object.fromEntries(methods.map((method) => [method, new Float64Array(this.cells)]));
      this.runs = 0; // those that are complete
      this.next = 0; // of all cells of all methods, in the run under way
      this.trajectory = null;
    }

    // Compute cell after cell until the clock says that it is time, or so many runs are complete.
    advance(deadline, clock, runs = Infinity) {
      const total = this.cells * this.methods.length;
      while (this.runs < runs && clock() < deadline) {
        if (this.trajectory === null) this.trajectory = this.episodesOf(this.runs);
        const method = this.methods[this.next % this.methods.length];
        const cell = Math.floor(this.next / this.methods.length);
        const alpha = this.alphas[cell % this.alphas.length];
        const lam = this.lams[Math.floor(cell / this.alphas.length)];
        this.sums[method][cell] += errorOf(this.walk, method, alpha, lam, this.trajectory);
        if (++this.next === total) {
          this.next = 0;
          this.runs++;
          this.trajectory = null;
        }
      }
    }

    episodesOf(run) {
      const generator = random(this.seed + run);
      return Array.from({ length: this.episodes }, () => this.walk.episode(generator));
    }

    // The mean error of a cell, or NaN where there is none yet.
    mean(method, a, l) {
      const cell = l * this.alphas.length + a;
      const done = cell * this.methods.length + this.methods.indexOf(method) < this.next;
      const runs = this.runs + (done ? 1 : 0);
      return runs === 0 ? NaN : this.sums[method][cell] / runs;
    }
  }

  return { ALPHAS, LAMBDAS, Walk, Surface, rmsError, step, learn, learnerOn, errorOf };
})();
