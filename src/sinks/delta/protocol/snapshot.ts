import pLimit from 'p-limit';
import { objectIn } from '../../../base/json.ts';
import { pathInTable } from '../../files/stored-files.ts';
import { type LogPlace, readCheckpoint } from './checkpoint.ts';
import {
  type Action,
  type Add,
  beforeVersion,
  damaged,
  entryPath,
  filePathOf,
  LAST_CHECKPOINT,
  LOG_FOLDER,
  logFileOf,
  type MetaData,
  type Protocol,
  parseEntry,
  type Remove,
  type Txn,
} from './entry.ts';

/** Number of entries that are fetched at the same time. */
const CONCURRENCY = 16;
/** Number of entries that are held in memory while they are applied, in order. */
const BATCH = 256;

/** A table at one version: the state that results from the log. */
export class LogSnapshot {
  /** The version; −1 before the first commit. */
  version = -1;
  protocol: Protocol | undefined;
  metaData: MetaData | undefined;
  /** Live files by their path from the table's folder. */
  readonly files = new Map<string, Add>();
  /** Files that left the table, by path, until their retention ends. */
  readonly tombstones = new Map<string, Remove>();
  readonly txns = new Map<string, Txn>();
  readonly domains = new Map<string, string>();

  apply(version: number, actions: readonly Action[]): void {
    for (const action of actions) {
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
    this.version = version;
  }

  /** Yields the actions that a checkpoint of this version must hold, with the tombstones younger than `since` (ms). */
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

/** The key of a file; paths were checked when they were read. */
const keyOf = (path: string): string => filePathOf(path) ?? path;

/** Reads the latest version of a table; version −1 if there is none. Throws UserError for a log that is damaged. */
export async function readSnapshot(place: LogPlace): Promise<LogSnapshot> {
  let log = await findLog(place);
  for (;;) {
    try {
      return await snapshotOf(place, log);
    } catch (error) {
      const latest = await findLog(place);
      if (latest.checkpoint <= log.checkpoint) throw error;
      // A purge removed a listed file before it was read; the purge's checkpoint has everything.
      log = latest;
    }
  }
}

interface Log {
  /** The version of the latest checkpoint; −1 if there is none. */
  readonly checkpoint: number;
  /** The versions of the entries, in order. */
  readonly entries: readonly number[];
}

async function findLog(place: LogPlace): Promise<Log> {
  const { storage, folder } = place;
  // The pointer is only a hint: if it is wrong, the listing takes longer.
  const text = (await storage.read(`${folder}/${LAST_CHECKPOINT}`))?.toString('utf8') ?? '';
  const { version } = objectIn(text);
  if (typeof version !== 'number' || !(version > 0)) return listLog(place, 0);
  const found = await listLog(place, version);
  // The pointer may name a missing checkpoint, as in a copy made by hand.
  return found.checkpoint < version ? listLog(place, 0) : found;
}

async function listLog({ storage, folder }: LogPlace, since: number): Promise<Log> {
  const entries: number[] = [];
  let checkpoint = -1;
  for await (const { path } of storage.list(`${folder}/${LOG_FOLDER}`, `${folder}/${beforeVersion(since)}`)) {
    const file = logFileOf(pathInTable(folder, path));
    if (file?.isEntry === true) entries.push(file.version);
    else if (file !== undefined) checkpoint = Math.max(checkpoint, file.version);
  }
  return { checkpoint, entries };
}

async function snapshotOf(place: LogPlace, { checkpoint, entries }: Log): Promise<LogSnapshot> {
  const { storage, folder } = place;
  const snapshot = new LogSnapshot();
  if (checkpoint >= 0) snapshot.apply(checkpoint, await readCheckpoint(place, checkpoint));
  const versions = entries.filter((version) => version > checkpoint);
  // Every version from the checkpoint on must be there once: a missing one would be a hole in the data.
  const hole = versions.findIndex((version, i) => version !== checkpoint + 1 + i);
  if (hole >= 0) {
    throw damaged(`${storage.address}/${folder}/${LOG_FOLDER}`, `version ${checkpoint + 1 + hole} is missing`);
  }
  const limit = pLimit(CONCURRENCY);
  for (let at = 0; at < versions.length; at += BATCH) {
    const paths = versions.slice(at, at + BATCH).map((version) => `${folder}/${entryPath(version)}`);
    const texts = await Promise.all(paths.map((path) => limit(() => storage.read(path))));
    for (const [i, text] of texts.entries()) {
      const where = `${storage.address}/${paths[i]}`;
      if (text === undefined) throw damaged(where, 'it is gone');
      snapshot.apply(versions[at + i], parseEntry(text.toString('utf8'), where));
    }
  }
  return snapshot;
}
