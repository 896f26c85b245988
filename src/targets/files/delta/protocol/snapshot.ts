import type { TableName } from '../../../../table/tables.ts';
import type { Action, Add, MetaData, Protocol, Remove } from './actions.ts';

/** A table at one version: what the actions of the log add up to. */
export class Snapshot {
  readonly tableName: TableName;
  /** The number of its last entry in the log; −1 before the first commit. */
  readonly logVersion: number;
  readonly protocol: Protocol | undefined;
  readonly metaData: MetaData | undefined;
  /** Live files by their path from the root of the storage. */
  readonly liveFiles = new Map<string, Add>();
  /** Files that left the table, by path. A checkpoint leaves out those whose retention has ended. */
  readonly tombstones = new Map<string, Remove>();
  readonly domains = new Map<string, string>();

  /** `actions`: those of all entries up to the version, or of a checkpoint and the entries after it. */
  constructor(tableName: TableName, logVersion = -1, actions: Iterable<Action> = []) {
    this.tableName = tableName;
    this.logVersion = logVersion;
    for (const action of actions) {
      if ('add' in action) {
        const path = `${this.tableName}/${action.add.path}`;
        this.liveFiles.set(path, action.add);
        this.tombstones.delete(path);
      } else if ('remove' in action) {
        const path = `${this.tableName}/${action.remove.path}`;
        this.liveFiles.delete(path);
        this.tombstones.set(path, action.remove);
      } else if ('domainMetadata' in action) {
        const { domain, configuration, removed } = action.domainMetadata;
        if (removed) this.domains.delete(domain);
        else this.domains.set(domain, configuration);
      } else if ('metaData' in action) this.metaData = action.metaData;
      else if ('protocol' in action) this.protocol = action.protocol;
    }
  }

  /** The table at a later version. `actions`: those of all entries since. */
  after(logVersion: number, actions: readonly Action[]): Snapshot {
    return new Snapshot(this.tableName, logVersion, [...this.actions(), ...actions]);
  }

  /** Yields the actions that a checkpoint must hold, with the tombstones of `tombstonesSince` (ms) and later. */
  *actions(tombstonesSince = 0): Generator<Action, void, undefined> {
    if (this.protocol !== undefined) yield { protocol: this.protocol };
    if (this.metaData !== undefined) yield { metaData: this.metaData };
    for (const [domain, configuration] of this.domains) {
      yield { domainMetadata: { domain, configuration, removed: false } };
    }
    for (const add of this.liveFiles.values()) yield { add };
    for (const remove of this.tombstones.values()) {
      if ((remove.deletionTimestamp ?? 0) >= tombstonesSince) yield { remove };
    }
  }
}
