// The live stream: everything at first, then what changed. Read with fetch, which shows status codes and heartbeats.

const OLD_MS = 15_000;
const HIDDEN_MS = 60_000;
const PAUSES = [1000, 2000, 4000, 5000];

export class Live {
  /** `changed(keys | null)`: null after a whole state. `stood({ok, text, status})`: the connection stands or not. */
  constructor({ changed, stood }) {
    this.values = new Map();
    this.changed = changed;
    this.stood = stood;
    this.query = '';
    this.lastId = '';
    this.heardAt = 0;
    this.failures = 0;
    this.offset = 0;
    this.awaySince = 0;
    this.abort = null;
    this.timer = 0;
    setInterval(() => this.watch(), 1000);
    document.addEventListener('visibilitychange', () => this.visibility());
  }

  /** Milliseconds of the server's clock. */
  now() {
    return Date.now() + this.offset;
  }

  /** Shows this view from now on. */
  open(query) {
    if (query === this.query) return;
    this.query = query;
    this.lastId = '';
    this.failures = 0;
    this.connect();
  }

  again() {
    this.failures = 0;
    this.connect();
  }

  async connect() {
    clearTimeout(this.timer);
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    this.heardAt = Date.now();
    try {
      const headers = this.lastId ? { 'Last-Event-ID': this.lastId } : {};
      const response = await fetch(`live?${this.query}`, { headers, signal: abort.signal, cache: 'no-store' });
      if (!response.ok) return this.refused(response.status, await response.text());
      await this.read(response.body.getReader());
      if (!abort.signal.aborted) this.lost();
    } catch {
      if (!abort.signal.aborted) this.lost();
    }
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.heardAt = Date.now();
      if (this.awaySince || !this.standing) this.back();
      const parts = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = parts.pop();
      for (const part of parts) this.take(part);
    }
  }

  take(text) {
    const fields = Object.fromEntries(text.split('\n').map((line) => line.split(/: (.*)/s, 2)));
    if (!fields.data) return;
    const data = JSON.parse(fields.data);
    this.lastId = fields.id;
    this.offset = Date.parse(data.now) - Date.now();
    if (fields.event === 'state') {
      this.values = new Map(Object.entries(data.values));
      this.changed(null);
      return;
    }
    for (const [key, change] of data.changes) {
      if (change === null) this.values.delete(key);
      else this.values.set(key, { ...this.values.get(key), ...change });
    }
    this.changed(new Map(data.changes));
  }

  back() {
    const wasAway = this.awaySince;
    this.failures = 0;
    this.awaySince = 0;
    this.standing = true;
    this.stood({ ok: true, wasAway });
  }

  lost() {
    this.standing = false;
    this.awaySince ||= this.heardAt + this.offset;
    const pause = PAUSES[Math.min(this.failures, PAUSES.length - 1)];
    this.failures += 1;
    this.stood({ ok: false, since: this.awaySince, pause });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), pause);
  }

  refused(status, text) {
    if (status >= 500 && status !== 503) return this.lost();
    this.standing = false;
    this.stood({ ok: false, status, text });
    if (status === 503) this.timer = setTimeout(() => this.connect(), 5000);
  }

  /** A connection that stands and says nothing is none. */
  watch() {
    if (this.standing && Date.now() - this.heardAt > OLD_MS) {
      this.abort?.abort();
      this.lost();
    }
  }

  /** A hidden tab costs the agent nothing. */
  visibility() {
    clearTimeout(this.hideTimer);
    if (document.hidden) {
      this.hideTimer = setTimeout(() => {
        this.abort?.abort();
        this.standing = false;
        this.asleep = true;
      }, HIDDEN_MS);
    } else if (this.asleep) {
      this.asleep = false;
      this.connect();
    }
  }
}
