import pLimit from 'p-limit';
import { retryOnError } from '../../../../base/retry.ts';
import { damagedError } from '../../stored-state.ts';
import { readCheckpoint } from './checkpoint.ts';
import {
  type Action,
  type Add,
  entryPath,
  LOG_FOLDER,
  logFileOf,
  type MetaData,
  type Protocol,
  parseEntry,
  type Remove,
  type TableFiles,
  versionStem,
} from './entry.ts';

/** Number of entries that are fetched at the same time. */
const READ_CONCURRENCY = 16;

/** A table at one version: what the actions of the log add up to. */
export class LogVersion {
  /** −1 before the first commit. */
  number: number;
  protocol: Protocol | undefined;
  metaData: MetaData | undefined;
  /** Live files by their path from the table's folder. */
  readonly files: Map<string, Add>;
  /** Files that left the table, by path. A checkpoint leaves out those whose retention has ended. */
  readonly tombstones: Map<string, Remove>;
  readonly domains: Map<string, string>;

  /** A copy of a version; without one, the table before its first commit. */
  constructor(before?: LogVersion) {
    this.number = before?.number ?? -1;
    this.protocol = before?.protocol;
    this.metaData = before?.metaData;
    this.files = new Map(before?.files);
    this.tombstones = new Map(before?.tombstones);
    this.domains = new Map(before?.domains);
  }

  /** Makes it the version `number`, by the actions of its entry, or of all entries up to it. */
  apply(number: number, actions: readonly Action[]): void {
    for (const action of actions) {
      if ('add' in action) {
        const { path } = action.add;
        this.files.set(path, action.add);
        this.tombstones.delete(path);
      } else if ('remove' in action) {
        const { path } = action.remove;
        this.files.delete(path);
        this.tombstones.set(path, action.remove);
      } else if ('domainMetadata' in action) {
        const { domain, configuration, removed } = action.domainMetadata;
        if (removed) this.domains.delete(domain);
        else this.domains.set(domain, configuration);
      } else if ('metaData' in action) this.metaData = action.metaData;
      else if ('protocol' in action) this.protocol = action.protocol;
    }
    this.number = number;
  }

  /** Yields the actions that a checkpoint of this version must hold, with the tombstones younger than `since` (ms). */
  *actions(since: number): Generator<Action, void, undefined> {
    if (this.protocol !== undefined) yield { protocol: this.protocol };
    if (this.metaData !== undefined) yield { metaData: this.metaData };
    for (const [domain, configuration] of this.domains) {
      yield { domainMetadata: { domain, configuration, removed: false } };
    }
    for (const add of this.files.values()) yield { add };
    for (const remove of this.tombstones.values()) {
      if ((remove.deletionTimestamp ?? 0) >= since) yield { remove };
    }
  }
}

/**
 * Reads the latest version of a table, only what is new since `before`, which stays as it is. Gives undefined before
 * the first commit. Throws UserError for a log that is damaged.
 */
export async function readLatest(tableFiles: TableFiles, before?: LogVersion): Promise<LogVersion | undefined> {
  if (before !== undefined) {
    const { checkpoint, entries } = await listLog(tableFiles, before.number + 1);
    if (checkpoint < 0 && entries.length === 0) return before;
    if (
      entries.every((version, i) => version === before.number + 1 + i) &&
      checkpoint <= (entries.at(-1) ?? before.number)
    ) {
      const latest = await applyEntries(tableFiles, before, entries);
      // A purge removes entries: if a listed one is gone, everything is read.
      if (latest !== undefined) return latest;
    }
  }
  // A purge may remove a listed file before it is read. Then its checkpoint has everything.
  return retryOnError(
    2,
    () => true,
    async () => readLog(tableFiles, await listLog(tableFiles)),
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
async function listLog({ storage }: TableFiles, since = 0): Promise<LogFiles> {
  const entries: number[] = [];
  let checkpoint = -1;
  for await (const { path } of storage.list(LOG_FOLDER, versionStem(since))) {
    const file = logFileOf(path);
    if (file?.isEntry === true) entries.push(file.version);
    else if (file !== undefined) checkpoint = Math.max(checkpoint, file.version);
  }
  return { checkpoint, entries };
}

async function readLog(tableFiles: TableFiles, { checkpoint, entries }: LogFiles): Promise<LogVersion | undefined> {
  if (checkpoint < 0 && entries.length === 0) return undefined;
  const checkpointed = new LogVersion();
  const { storage } = tableFiles;
  if (checkpoint >= 0) checkpointed.apply(checkpoint, await readCheckpoint(tableFiles, checkpoint));
  const versions = entries.filter((version) => version > checkpoint);
  // Every version from the checkpoint on must be there once: a missing one would be a hole in the data.
  const hole = versions.findIndex((version, i) => version !== checkpoint + 1 + i);
  if (hole >= 0) {
    throw damagedError(`${storage.address}/${LOG_FOLDER}`, `version ${checkpoint + 1 + hole} is missing`);
  }
  const latest = await applyEntries(tableFiles, checkpointed, versions);
  if (latest === undefined) throw damagedError(`${storage.address}/${LOG_FOLDER}`, 'an entry is gone');
  return latest;
}

/** A copy of a version with the entries after it applied, in order; undefined if an entry is gone. */
async function applyEntries(
  { storage }: TableFiles,
  before: LogVersion,
  versions: readonly number[],
): Promise<LogVersion | undefined> {
  const latest = new LogVersion(before);
  const texts = await pLimit(READ_CONCURRENCY).map(versions, (version) => storage.read(entryPath(version)));
  for (const [i, text] of texts.entries()) {
    if (text === undefined) return undefined;
    const where = `${storage.address}/${entryPath(versions[i])}`;
    latest.apply(versions[i], parseEntry(text.toString('utf8'), where));
  }
  return latest;
}
