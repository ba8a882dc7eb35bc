// The WebSocket: messages in (their layout is in messages.py), requests out, and again after a loss.

const SAMPLES = 1, SCORES = 2;

export function decode(buffer) {
  const view = new DataView(buffer);
  return view.getUint8(0) === SAMPLES ? decodeSamples(buffer, view) : decodeScores(buffer, view);
}

function decodeSamples(buffer, view) {
  const columns = view.getUint16(2, true), n = view.getUint32(4, true);
  let at = 24;
  const take = (Kind) => {
    const part = new Kind(buffer, at, n);
    at += part.byteLength;
    return part;
  };
  return {
    kind: "samples", anew: view.getUint8(1) === 1, length: n, subscription: view.getUint32(8, true),
    missed: view.getUint32(12, true), first: view.getFloat64(16, true),
    times: take(Float64Array), received: take(Float64Array),
    columns: Array.from({ length: columns }, () => take(Float32Array)), starts: take(Uint8Array),
  };
}

function decodeScores(buffer, view) {
  const q = view.getUint32(4, true);
  return {
    kind: "scores", errors: new Float32Array(buffer, 8, q), means: new Float32Array(buffer, 8 + 4 * q, q),
    scored: new Uint32Array(buffer, 8 + 8 * q, q),
  };
}

// Calls receive(message) with what comes and lost(seconds until the next trial) when the connection ends.
export class Connection {
  constructor(receive, lost) {
    this.receive = receive;
    this.lost = lost;
    this.trials = 0;
    this.open();
  }

  open() {
    const url = new URL("feed", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => {
      this.trials = 0;
      if (typeof data === "string") {
        const message = JSON.parse(data);
        this.receive({ ...message, kind: message.type });
      } else this.receive(decode(data));
    };
    this.socket.onclose = () => {
      const wait = Math.min(0.5 * 2 ** this.trials++, 10) * (0.8 + 0.4 * Math.random());
      this.lost(wait);
      setTimeout(() => this.open(), 1000 * wait);
    };
  }

  send(request) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(request));
  }
}
