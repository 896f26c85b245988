import pLimit from 'p-limit';
import { retryAtOnce } from '../../../../base/retry.ts';
import type { Table } from '../../../../table/tables.ts';
import { damagedError } from '../../stored-state.ts';
import { readCheckpoint } from './checkpoint.ts';
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
  type TableLocation,
  versionStem,
} from './entry.ts';

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

  /** The table before its first commit. */
  constructor(table: Table['name']) {
    this.table = table;
  }

  copy(): Snapshot {
    const copy = new Snapshot(this.table);
    copy.apply(this.version, this.actions());
    return copy;
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

/** The latest snapshot of a table, and for how long readers may need older versions. */
export interface LatestTable {
  readonly location: TableLocation;
  readonly snapshot: Snapshot;
  /** The time now (ms since 1970). */
  readonly now: number;
  /** Time that files which left the table stay (ms). */
  readonly retentionMs: number;
}

/**
 * Reads the latest snapshot of a table, only what is new since `before`, which stays as it is. Gives undefined before
 * the first commit. Throws UserError for a log that is damaged.
 */
export async function readLatest(location: TableLocation, before?: Snapshot): Promise<Snapshot | undefined> {
  if (before !== undefined) {
    const next = before.version + 1;
    const { checkpoint, entries } = await listLog(location, next);
    if (checkpoint < 0 && entries.length === 0) return before;
    if (entries.every((version, i) => version === next + i) && checkpoint < next + entries.length) {
      const latest = await applyEntries(location, before, entries);
      // A purge removes entries: if a listed one is gone, everything is read.
      if (latest !== undefined) return latest;
    }
  }
  // A purge may remove a listed file before it is read. Then its checkpoint has everything.
  return retryAtOnce(
    2,
    () => true,
    async () => readLog(location, await listLog(location)),
  );
}

/** The files of a log. */
interface LogFiles {
  /** The version of the latest checkpoint; −1 if there is none. */
  readonly checkpoint: number;
  /** The versions of the entries, in order. */
  readonly entries: readonly number[];
}

/** Lists the files of a version or a later one. */
async function listLog({ storage, table }: TableLocation, since = 0): Promise<LogFiles> {
  const entries: number[] = [];
  let checkpoint = -1;
  for await (const { path } of storage.list(logFolder(table), versionStem(table, since))) {
    const file = logFileOf(path);
    if (file?.isEntry === true) entries.push(file.version);
    else if (file !== undefined) checkpoint = Math.max(checkpoint, file.version);
  }
  return { checkpoint, entries };
}

async function readLog(location: TableLocation, { checkpoint, entries }: LogFiles): Promise<Snapshot | undefined> {
  if (checkpoint < 0 && entries.length === 0) return undefined;
  const { storage, table } = location;
  const checkpointed = new Snapshot(table);
  const where = `${storage.address}/${logFolder(table)}`;
  if (checkpoint >= 0) checkpointed.apply(checkpoint, await readCheckpoint(location, checkpoint));
  const versions = entries.filter((version) => version > checkpoint);
  // Every version from the checkpoint on must be there once: a missing one would be a hole in the data.
  const hole = versions.findIndex((version, i) => version !== checkpoint + 1 + i);
  if (hole >= 0) throw damagedError(where, `version ${checkpoint + 1 + hole} is missing`);
  const latest = await applyEntries(location, checkpointed, versions);
  if (latest === undefined) throw damagedError(where, 'an entry is gone');
  return latest;
}

/** A copy of a snapshot with the entries after it applied, in order; undefined if an entry is gone. */
async function applyEntries(
  { storage, table }: TableLocation,
  before: Snapshot,
  versions: readonly number[],
): Promise<Snapshot | undefined> {
  const latest = before.copy();
  const texts = await pLimit(READ_CONCURRENCY).map(versions, (version) => storage.read(entryPath(table, version)));
  for (const [i, text] of texts.entries()) {
    if (text === undefined) return undefined;
    const where = `${storage.address}/${entryPath(table, versions[i])}`;
    latest.apply(versions[i], parseEntry(text.toString('utf8'), table, where));
  }
  return latest;
}
