import type { Action, Add, MetaData, Protocol, Remove, Txn } from './actions.ts';
import { filePathOf } from './paths.ts';

/** A table at one version: the log, reconciled. */
export class Snapshot {
  /** −1 before the first commit. */
  version = -1;
  protocol: Protocol | undefined;
  metaData: MetaData | undefined;
  /** By the path of the file, from the table's folder. */
  readonly files = new Map<string, Add>();
  /** Files that left the table, by path, until they are forgotten. */
  readonly tombstones = new Map<string, Remove>();
  readonly txns = new Map<string, Txn>();
  /** Configuration by domain. */
  readonly domains = new Map<string, string>();

  /** Takes in the next entry of the log, or a checkpoint. */
  apply(version: number, actions: readonly Action[]): void {
    for (const action of actions) this.#applyOne(action);
    this.version = version;
  }

  #applyOne(action: Action): void {
    if ('add' in action) {
      const path = keyOf(action.add.path);
      this.files.set(path, action.add);
      this.tombstones.delete(path);
    } else if ('remove' in action) {
      const path = keyOf(action.remove.path);
      this.files.delete(path);
      this.tombstones.set(path, action.remove);
    } else if ('domainMetadata' in action) {
      const { domain, configuration, removed } = action.domainMetadata;
      if (removed) this.domains.delete(domain);
      else this.domains.set(domain, configuration);
    } else if ('txn' in action) this.txns.set(action.txn.appId, action.txn);
    else if ('metaData' in action) this.metaData = action.metaData;
    else if ('protocol' in action) this.protocol = action.protocol;
  }

  /** All that a checkpoint of this version must hold: tombstones younger than `since` (ms) among it. */
  *actions(since: number): Generator<Action, void, undefined> {
    if (this.protocol !== undefined) yield { protocol: this.protocol };
    if (this.metaData !== undefined) yield { metaData: this.metaData };
    for (const txn of this.txns.values()) yield { txn };
    for (const [domain, configuration] of this.domains) {
      yield { domainMetadata: { domain, configuration, removed: false } };
    }
    for (const add of this.files.values()) yield { add };
    for (const remove of this.tombstones.values()) {
      if ((remove.deletionTimestamp ?? 0) >= since) yield { remove };
    }
  }
}

/** Paths were checked when they were read. */
const keyOf = (path: string): string => filePathOf(path) ?? path;
