// The memory of the package's core (core/memory), in JavaScript: weights and trace at the cost of the active features.
//
//   e_i = s·z_k        w_i = u_i + y_k + c·z_k        with k = slot_i, the place of entry i on the list of traced entries
//
//   const { EDGE, OwedMemory, EagerMemory, Learner, MovingPoint } = trueonline.memory;
//
//   new OwedMemory(n)              this memory: u, slot, owner, z, y, and the numbers s and c
//   new EagerMemory(n)             the same vectors kept plainly: every entry of e and w is passed over at every step
//     both: .weight(i), .trace(i), .visits, and the operations of methods: value, along, decay, imprint, replace, learn, forget
//   new Learner(method, memory, {alpha, gamma, lam})   accumulate, replace or true online TD(λ) over either memory
//     .start(x), .step(reward, next, gammaNext)        gammaNext = 0 ends an episode
//   new MovingPoint({n, active, random})               a stream of features: the tiles under a point that moves along a ring
//
// Features are {indices, values}; `values` is null where all of them are 1. Names and thresholds are those of the Python code.
// Nothing here knows of a page: Node can run this file as it stands.
"use strict";
globalThis.trueonline = globalThis.trueonline || {};
trueonline.memory = (() => {
  const EDGE = 1e-2; // rebase below this s: an imprint at s loses log10(1/s) digits
  const MIDDLE = (1 / EDGE + EDGE) / 2; // of [EDGE, 1/EDGE], the range that s may be in
  const REACH = (1 / EDGE - EDGE) / 2;
  const DROP = 1e-20; // a trace entry below this share of the whole trace can no longer change a weight in double precision
  const SPARE = 64; // how many entries the list may always hold before they are looked through

  const entry = (x, j) => (x.values === null ? 1 : x.values[j]);

  class OwedMemory {
    constructor(n) {
      this.n = n;
      this.s = 1;
      this.c = 0;
      this.count = 0;
      this.room = SPARE;
      this.u = new Float64Array(n);
      this.z = new Float64Array(n + 1); // slot 0 is that of all entries without trace, and stays zero
      this.y = new Float64Array(n + 1);
      this.slot = new Int32Array(n);
      this.owner = new Int32Array(n + 1);
      this.visits = 0;
      this.rebases = 0;
      this.rebaseVisits = 0;
    }

    weight(i) {
      const k = this.slot[i];
      return this.u[i] + (this.y[k] + this.c * this.z[k]);
    }

    trace(i) {
      return this.s * this.z[this.slot[i]];
    }

    value(x) {
      let v = 0;
      for (let j = 0; j < x.indices.length; j++) v += this.weight(x.indices[j]) * entry(x, j);
      this.visits += x.indices.length;
      return v;
    }

    // eᵀx. The entries were visited by `value` a moment before.
    along(x) {
      let sum = 0;
      for (let j = 0; j < x.indices.length; j++) sum += this.z[this.slot[x.indices[j]]] * entry(x, j);
      return this.s * sum;
    }

    // Whether s has left the range in which imprints keep their digits.
    get worn() {
      return Math.abs(this.s - MIDDLE) > REACH;
    }

    // e ← g·e
    decay(g) {
      this.s *= g;
    }

    // e ← e + a·x and w ← w + b·x
    imprint(x, a, b) {
      if (this.worn) this.rebase();
      const aZ = a / this.s;
      const bY = b - this.c * aZ;
      for (let j = 0; j < x.indices.length; j++) {
        const i = x.indices[j];
        const value = entry(x, j);
        let k = this.slot[i];
        if (k === 0) {
          k = ++this.count;
          this.slot[i] = k;
          this.owner[k] = i;
          this.z[k] = aZ * value;
          this.y[k] = bY * value;
        } else {
          this.z[k] += aZ * value;
          this.y[k] += bY * value;
        }
      }
      this.visits += x.indices.length;
    }

    // e_i ← 1 where x_i = 1
    replace(x) {
      if (this.s < EDGE) this.rebase();
      const one = 1 / this.s;
      for (const i of x.indices) {
        let k = this.slot[i];
        if (k === 0) {
          k = ++this.count;
          this.slot[i] = k;
          this.owner[k] = i;
          this.z[k] = this.y[k] = 0;
        }
        this.y[k] -= this.c * (one - this.z[k]);
        this.z[k] = one;
      }
      this.visits += x.indices.length;
    }

    // w ← w + b·e
    learn(b) {
      this.c += b * this.s;
    }

    // e ← 0
    forget() {
      this.s = 0;
    }

    // Pay what is owed, and take faded entries off the list when it has doubled since the last look.
    rebase() {
      let norm = 0;
      for (let k = 1; k <= this.count; k++) {
        this.y[k] += this.c * this.z[k];
        this.z[k] *= this.s;
        norm += Math.abs(this.z[k]);
      }
      this.rebases++;
      this.rebaseVisits += this.count;
      this.visits += this.count;
      this.s = 1;
      this.c = 0;
      if (this.count >= this.room || (norm === 0 && this.room < Infinity)) this.look(norm);
    }

    look(norm) {
      let kept = 0;
      for (let k = 1; k <= this.count; k++) {
        const i = this.owner[k];
        if (Math.abs(this.z[k]) <= DROP * norm) {
          this.u[i] += this.y[k];
          this.slot[i] = 0;
        } else {
          kept++;
          this.slot[i] = kept;
          this.owner[kept] = i;
          this.z[kept] = this.z[k];
          this.y[kept] = this.y[k];
        }
      }
      this.count = kept;
      this.room = 2 * kept + SPARE;
    }
  }

  class EagerMemory {
    constructor(n) {
      this.n = n;
      this.w = new Float64Array(n);
      this.e = new Float64Array(n);
      this.traced = 0; // entries of e that were not zero when they were last passed over
      this.visits = 0;
    }

    weight(i) {
      return this.w[i];
    }

    trace(i) {
      return this.e[i];
    }

    value(x) {
      let v = 0;
      for (let j = 0; j < x.indices.length; j++) v += this.w[x.indices[j]] * entry(x, j);
      this.visits += x.indices.length;
      return v;
    }

    along(x) {
      let sum = 0;
      for (let j = 0; j < x.indices.length; j++) sum += this.e[x.indices[j]] * entry(x, j);
      return sum;
    }

    decay(g) {
      const { n, e } = this;
      for (let i = 0; i < n; i++) e[i] *= g;
      this.visits += n;
    }

    imprint(x, a, b) {
      for (let j = 0; j < x.indices.length; j++) {
        this.e[x.indices[j]] += a * entry(x, j);
        this.w[x.indices[j]] += b * entry(x, j);
      }
      this.visits += x.indices.length;
    }

    replace(x) {
      for (const i of x.indices) this.e[i] = 1;
      this.visits += x.indices.length;
    }

    learn(b) {
      const { n, e, w } = this;
      let traced = 0;
      for (let i = 0; i < n; i++) {
        w[i] += b * e[i];
        if (e[i] !== 0) traced++;
      }
      this.traced = traced; // and no visits: a better loop would decay and learn in one pass, so one pass is counted
    }

    forget() {
      this.e.fill(0);
    }
  }

  // A method as four operations on a memory. `step` runs all four, and a page can run them one by one.
  class Learner {
    constructor(method, memory, { alpha, gamma, lam }) {
      if (!["accumulate", "replace", "true_online"].includes(method)) throw new Error(`no method is called ${method}`);
      this.method = method;
      this.memory = memory;
      this.alpha = alpha;
      this.gamma = gamma; // of the coming states
      this.lam = lam;
      this.here = null;
      this.gammaHere = 0; // of the state that is left next; 0 where an episode begins
      this.vOld = 0;
    }

    start(x) {
      this.here = x;
      this.gammaHere = 0;
      this.vOld = 0;
      this.memory.forget();
    }

    recall(reward, next, gammaNext = this.gamma) {
      this.next = next;
      this.gammaNext = gammaNext;
      this.v = this.memory.value(this.here);
      this.along = this.memory.along(this.here);
      this.vNext = this.memory.value(next);
      this.delta = reward + gammaNext * this.vNext - this.v;
    }

    decay() {
      this.fade = this.gammaHere * this.lam;
      this.memory.decay(this.fade);
    }

    imprint() {
      const dutch = this.method === "true_online";
      this.toTrace = dutch ? 1 - this.alpha * this.fade * this.along : 1;
      this.toWeights = dutch ? -this.alpha * (this.v - this.vOld) : 0;
      if (this.method === "replace") this.memory.replace(this.here);
      else this.memory.imprint(this.here, this.toTrace, this.toWeights);
    }

    learn() {
      this.toAll = this.alpha * (this.method === "true_online" ? this.delta + this.v - this.vOld : this.delta);
      this.memory.learn(this.toAll);
      this.here = this.next;
      this.gammaHere = this.gammaNext;
      this.vOld = this.vNext;
    }

    step(reward, next, gammaNext = this.gamma) {
      this.recall(reward, next, gammaNext);
      this.decay();
      this.imprint();
      this.learn();
      return this.delta;
    }
  }

  // A point moves along a ring, by a quarter of a tile or more at a step. Each active feature comes from a row of n/active tiles
  // with an offset of its own, so that one tile of each row lies under the point. The reward rises and falls once in 32 tiles.
  class MovingPoint {
    constructor({ n, active, random }) {
      this.random = random;
      this.rows = Math.min(active, Math.ceil(n / 2)); // each row has at least two tiles
      this.tiles = Math.floor(n / this.rows);
      this.at = 0;
    }

    features() {
      const indices = new Int32Array(this.rows);
      for (let row = 0; row < this.rows; row++) {
        indices[row] = row * this.tiles + (Math.floor(this.at * this.tiles + row / this.rows) % this.tiles);
      }
      return { indices, values: null };
    }

    move() {
      this.at = (this.at + (0.25 + 0.6 * this.random()) / this.tiles) % 1;
      return 0.5 - 0.5 * Math.cos((2 * Math.PI * this.at * this.tiles) / Math.min(this.tiles, 32));
    }
  }

  return { EDGE, DROP, OwedMemory, EagerMemory, Learner, MovingPoint };
})();
