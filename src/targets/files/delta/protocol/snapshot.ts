import pLimit from 'p-limit';
import { listAll } from '../../../../storage/storage.ts';
import type { Table } from '../../../../table/tables.ts';
import { damagedError } from '../../stored-state.ts';
import {
  type Action,
  type Add,
  entryPath,
  logFileOf,
  logFolder,
  type MetaData,
  type Protocol,
  parseEntry,
  type Remove,
  type TableAccess,
  versionStem,
} from './actions.ts';
import { readCheckpoint } from './checkpoint.ts';

/** Number of entries that are fetched at the same time. */
const READ_CONCURRENCY = 16;

/** A table at one version: what the actions of the log add up to. */
export class Snapshot {
  readonly table: Table['name'];
  /** −1 before the first commit. */
  version = -1;
  protocol: Protocol | undefined;
  metaData: MetaData | undefined;
  /** Live files by their path from the root of the storage. */
  readonly adds = new Map<string, Add>();
  /** Files that left the table, by path. A checkpoint leaves out those whose retention has ended. */
  readonly tombstones = new Map<string, Remove>();
  readonly domains = new Map<string, string>();

  constructor(table: Table['name']) {
    this.table = table;
  }

  /** Makes it that of a version, by the actions of its entry, or of all entries up to it. */
  apply(version: number, actions: Iterable<Action>): void {
    for (const action of actions) {
      if ('add' in action) {
        const path = `${this.table}/${action.add.path}`;
        this.adds.set(path, action.add);
        this.tombstones.delete(path);
      } else if ('remove' in action) {
        const path = `${this.table}/${action.remove.path}`;
        this.adds.delete(path);
        this.tombstones.set(path, action.remove);
      } else if ('domainMetadata' in action) {
        const { domain, configuration, removed } = action.domainMetadata;
        if (removed) this.domains.delete(domain);
        else this.domains.set(domain, configuration);
      } else if ('metaData' in action) this.metaData = action.metaData;
      else if ('protocol' in action) this.protocol = action.protocol;
    }
    this.version = version;
  }

  /** Yields the actions that a checkpoint must hold, with the tombstones younger than `since` (ms). */
  *actions(since = 0): Generator<Action, void, undefined> {
    if (this.protocol !== undefined) yield { protocol: this.protocol };
    if (this.metaData !== undefined) yield { metaData: this.metaData };
    for (const [domain, configuration] of this.domains) {
      yield { domainMetadata: { domain, configuration, removed: false } };
    }
    for (const add of this.adds.values()) yield { add };
    for (const remove of this.tombstones.values()) {
      if ((remove.deletionTimestamp ?? 0) >= since) yield { remove };
    }
  }
}

/** A table as it is now, and for how long readers may need older versions. */
export interface TableNow {
  readonly access: TableAccess;
  readonly snapshot: Snapshot;
  /** The time now (ms since 1970). */
  readonly now: number;
  /** Time that files which left the table stay (ms). */
  readonly retentionMs: number;
}

/**
 * Reads the latest snapshot of a table: from the latest checkpoint that is newer than `before`, else on from `before`.
 * Gives undefined if nothing is new. Throws UserError for a log that is damaged.
 */
export function readSnapshot(access: TableAccess, before: Snapshot): Promise<Snapshot | undefined> {
  // A purge may remove a listed file before it is read. Then its checkpoint has everything.
  return readOnce(access, before).catch(() => readOnce(access, before));
}

async function readOnce(access: TableAccess, before: Snapshot): Promise<Snapshot | undefined> {
  const { storage, table } = access;
  const { checkpoint, entries } = await listLog(access, before.version + 1);
  if (checkpoint < 0 && entries.length === 0) return undefined;
  const snapshot = new Snapshot(table);
  if (checkpoint < 0) snapshot.apply(before.version, before.actions());
  else snapshot.apply(checkpoint, await readCheckpoint(access, checkpoint));
  const versions = entries.filter((version) => version > snapshot.version);
  const texts = await pLimit(READ_CONCURRENCY).map(versions, (version) => storage.read(entryPath(table, version)));
  for (const [i, version] of versions.entries()) {
    const text = texts[i];
    const next = snapshot.version + 1;
    // A missing version would be a hole in the data.
    if (version !== next || text === undefined) {
      throw damagedError(`${storage.address}/${logFolder(table)}`, `version ${next} is missing`);
    }
    const where = `${storage.address}/${entryPath(table, version)}`;
    snapshot.apply(version, parseEntry(text.toString('utf8'), table, where));
  }
  return snapshot;
}

/** Lists the log from a version on: its latest checkpoint (−1 if there is none), and its entries in order. */
async function listLog({ storage, table }: TableAccess, since: number) {
  const objects = await listAll(storage, logFolder(table), versionStem(table, since));
  const files = objects.flatMap(({ path }) => logFileOf(path) ?? []);
  const versionsOf = (entries: boolean) =>
    files.filter(({ isEntry }) => isEntry === entries).map(({ version }) => version);
  return { checkpoint: Math.max(-1, ...versionsOf(false)), entries: versionsOf(true) };
}
