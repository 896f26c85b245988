import { IdHistory } from './id-history.ts';
import type { LedgerKeys } from './ledger-file.ts';
import type { LedgerLine, LineOf, ServiceAddress } from './lines.ts';

/**
 * Follows the lines of a ledger about some ids at one service. The memory of a run and a proof are read from it. `begin`
 * tells whether the other lines of its run count, and `purged` ends the purges of all ids in a place. Any other line is
 * of one id: see `IdHistory`. Memory: what the lines say of these ids, and a line of each run and each place.
 */
export class LedgerHistory {
  /** Other addresses of runs on the same service id: what they did does not count here. */
  readonly otherAddresses = new Set<string>();
  /** The newest purge that was done, by place. */
  readonly lastPurgeByPlace = new Map<string, LineOf<'purged'>>();
  /** True if the service has confirmed a deletion, of whichever id. */
  hasConfirmed = false;
  /** Number of lines of the suppression list at the last purge, for whichever service. */
  suppressionLength = 0;
  /** When a purge began with a new or an older suppression list, if one did: whoever was erased before may be back. */
  newListAt = '';
  readonly #service: ServiceAddress;
  readonly #keys: LedgerKeys;
  /** The first lines of all runs on this service, by run. An `IdHistory` has those that were to delete its id. */
  readonly #runs = new Map<string, LineOf<'begin'>>();
  /** Of each of the ids, by its hash. */
  readonly #histories: ReadonlyMap<string, IdHistory>;

  constructor(service: ServiceAddress, keys: LedgerKeys, ids: readonly string[]) {
    this.#service = service;
    this.#keys = keys;
    this.#histories = new Map(ids.map((id) => [keys.idKey.hashOf(id), new IdHistory()]));
  }

  /** What the lines say of one of the ids; nothing of any other. */
  of(id: string): IdHistory {
    return this.#histories.get(this.#keys.idKey.hashOf(id)) ?? new IdHistory();
  }

  /** The runs that were to delete one of the ids, in the order of the ledger. */
  get runsOfIds(): LineOf<'begin'>[] {
    const runs = new Set([...this.#histories.values()].flatMap((history) => [...history.runs]));
    return [...this.#runs.values()].filter((run) => runs.has(run));
  }

  /** Takes the next line of the ledger. */
  add(line: LedgerLine): void {
    if (line.kind === 'begin') {
      if ((line.suppressed ?? Infinity) < this.suppressionLength) this.newListAt = line.at;
      const { baseUrl, serviceId } = this.#service;
      if (line.service_id !== serviceId) return;
      if (line.base_url === baseUrl) this.#runs.set(line.run, line);
      else this.otherAddresses.add(line.base_url);
      return;
    }
    if (line.kind === 'purged') this.suppressionLength = line.suppressed;
    const run = this.#runs.get(line.run);
    // A run on another service says nothing here: the same id may be another person there.
    if (run === undefined) return;
    if (line.kind === 'after' && line.outcome === 'done') this.hasConfirmed = true;
    if (line.kind === 'purged') {
      this.lastPurgeByPlace.set(line.place, line);
      for (const history of this.#histories.values()) if (history.runs.has(run)) history.endPurge(line);
    } else this.#histories.get(line.id ?? '')?.add(line, run);
  }
}
