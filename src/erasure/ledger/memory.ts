import { hasVerdict, isOfService, type LedgerLine, type ServiceAddress, type Verdict } from './chain.ts';

/** What the ledger knows of an id at one service: `done` once its deletion was confirmed. */
export interface Remembered {
  readonly outcome: Verdict;
  /** The last answer with this outcome (ms since 1970). */
  readonly at: number;
  /** When the newest deletion was asked for that was answered (ms since 1970), if the list said so. */
  readonly requestedAt: number | undefined;
}

/** What a run must know of the runs before it on the same service. Memory: the ids that were answered. */
export class LedgerMemory {
  readonly #service: ServiceAddress;
  readonly #runs = new Set<string>();
  readonly #answers = new Map<string, Remembered>();
  #hasConfirmed = false;
  #suppressionLength = 0;

  constructor(service: ServiceAddress) {
    this.#service = service;
  }

  /** True if the service has confirmed a deletion. */
  get hasConfirmed(): boolean {
    return this.#hasConfirmed;
  }

  /** Number of people on the suppression list at the last purge, for whichever service. */
  get suppressionLength(): number {
    return this.#suppressionLength;
  }

  remembered(idHash: string): Remembered | undefined {
    return this.#answers.get(idHash);
  }

  /** Notes that the service confirms a deletion in this run. */
  noteConfirmed(): void {
    this.#hasConfirmed = true;
  }

  /** Notes a line of an earlier run. */
  see(line: LedgerLine): void {
    if (line.kind === 'open' && isOfService(line, this.#service)) this.#runs.add(line.run);
    if (line.kind === 'purged') this.#suppressionLength = line.listed;
    if (line.kind !== 'after' || !this.#runs.has(line.run) || !hasVerdict(line)) return;
    const requestedAt = line.requested_at === undefined ? undefined : Date.parse(line.requested_at);
    const answer = { outcome: line.outcome, at: Date.parse(line.at), requestedAt };
    this.#answers.set(line.id, afterAnswer(this.#answers.get(line.id), answer));
    this.#hasConfirmed ||= line.outcome === 'done';
  }
}

/** Whoever was deleted once is unknown to the service later, which then may reject the id: it stays `done`. */
function afterAnswer(before: Remembered | undefined, answer: Remembered): Remembered {
  const { outcome, at } = before?.outcome === 'done' && answer.outcome === 'rejected' ? before : answer;
  const times = [before?.requestedAt, answer.requestedAt].filter((time) => time !== undefined);
  return { outcome, at, requestedAt: times.length === 0 ? undefined : Math.max(...times) };
}
