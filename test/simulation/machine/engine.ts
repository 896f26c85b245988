import { DuckDBConnection, DuckDBInstance, DuckDBPreparedStatement, DuckDBResult } from '@duckdb/node-api';
import { noteMadeNames } from './names.ts';
import { noteMade } from './power.ts';
import { current, type Effect, type MachineProcess } from './process.ts';
import { realFs } from './real-fs.ts';
import { running } from './scheduler.ts';

/*
 * DuckDB in a simulation: each statement is one event, the lock of a file keeps other simulated processes out, as the system's
 * lock would, and a killed process leaves the file and its log as they were.
 */

/** The processes that have a file open. */
const holders = new Map<string, Set<{ readonly process: MachineProcess; readonly writes: boolean }>>();

const ATTACH = /^ATTACH '((?:[^']|'')+)' AS (\w+)(.*)$/s;
/** Files that it writes and does not sync. */
const COPY = /^COPY\b.*\bTO '((?:[^']|'')+)'/s;
const DETACH = /^DETACH (\w+)/;
/** Statements that write to a disk. */
const WRITES = /^\s*(COMMIT|COPY|CHECKPOINT|EXPORT)\b/i;

interface Attached {
  readonly file: string;
  readonly release: () => void;
}
/** Attached files by connection, then by the name that the file was given. */
const attached = new WeakMap<object, Map<string, Attached>>();

async function statement<T>(connection: object, sql: string, work: () => Promise<T>): Promise<T> {
  const process = current();
  if (process === undefined) return work();
  await process.turn(() => process.effect(...effectsOf(process, connection, sql)));
  const attach = ATTACH.exec(sql);
  const release = attach === null ? undefined : take(process, attach[1].replaceAll("''", "'"), attach[3]);
  if (process.diskLeft <= 0 && WRITES.test(sql)) {
    if (/^\s*COMMIT/i.test(sql)) await running.run(undefined, () => (connection as DuckDBConnection).run('ROLLBACK'));
    throw new Error('IO Error: Could not write file "target": No space left on device');
  }
  try {
    const result = await process.scheduler.outside(process, work);
    if (attach !== null && release !== undefined) remember(connection, attach[2], release);
    const copy = COPY.exec(sql);
    if (copy !== null) noteCopied(copy[1].replaceAll("''", "'"));
    const detach = DETACH.exec(sql);
    if (detach !== null) attached.get(connection)?.get(detach[1])?.release();
    return result;
  } catch (error) {
    release?.release();
    throw error;
  }
}

function effectsOf({ place }: MachineProcess, connection: object, sql: string): Effect[] {
  if (!/^\s*COMMIT\b/i.test(sql)) return ['statement'];
  const isPlace = [...(attached.get(connection)?.values() ?? [])].some(({ file }) => file === place);
  return isPlace ? ['commit', 'store'] : ['commit'];
}

function noteCopied(path: string): void {
  noteMade(path);
  noteMadeNames(path);
}

function remember(connection: object, name: string, release: Attached): void {
  const known = attached.get(connection) ?? new Map<string, Attached>();
  attached.set(connection, known.set(name, release));
}

/** Takes the lock that DuckDB would take; throws as it does where another process has it. */
function take(process: MachineProcess, path: string, how: string): Attached | undefined {
  if (path === ':memory:') return undefined;
  const file = realFs.existsSync(path) ? realFs.realpathSync(path) : path;
  const writes = !how.includes('READ_ONLY');
  const others = holders.get(file) ?? new Set();
  for (const other of others) {
    if (other.process === process || other.process.isDead || !(writes || other.writes)) continue;
    throw new Error(
      `IO Error: Could not set lock on file "${file}": Conflicting lock is held in node (PID ${other.process.pid}). See also https://duckdb.org/docs/stable/connect/concurrency`,
    );
  }
  const own = { process, writes };
  holders.set(file, others.add(own));
  if (writes) process.databases.add(file);
  const release = () => {
    others.delete(own);
    process.databases.delete(file);
  };
  return { file, release };
}

type Method = (this: object, ...parameters: readonly unknown[]) => Promise<unknown>;

function wrap(prototype: object, name: string, sqlOf: (parameters: readonly unknown[]) => string): void {
  const methods = prototype as Record<string, Method>;
  const original = methods[name];
  methods[name] = function (...parameters) {
    return statement(this, sqlOf(parameters), () => original.apply(this, [...parameters]));
  };
}

function wrapClose(prototype: object): void {
  const methods = prototype as { closeSync(): void };
  const original = methods.closeSync;
  methods.closeSync = function (this: object) {
    const process = current();
    // A killed process does not close its files: `closeAfterDeath` does that later.
    if (process?.isDead === true) return;
    process?.natives.delete(this as { closeSync(): void });
    for (const { release } of attached.get(this)?.values() ?? []) release();
    original.call(this);
  };
}

let isInstalled = false;

/** Makes the calls of DuckDB events of the simulation, for simulated processes; for others nothing changes. */
export function installEngine(): void {
  if (isInstalled) return;
  isInstalled = true;
  const first = ([sql]: readonly unknown[]) => String(sql);
  for (const name of ['run', 'runAndReadAll', 'stream', 'extractStatements', 'prepare']) {
    wrap(DuckDBConnection.prototype, name, first);
  }
  wrap(DuckDBPreparedStatement.prototype, 'runAndReadAll', () => 'SELECT');
  wrap(DuckDBResult.prototype, 'fetchChunk', () => 'SELECT');
  wrapClose(DuckDBConnection.prototype);
  wrapClose(DuckDBInstance.prototype);
  const create = DuckDBInstance.create.bind(DuckDBInstance);
  DuckDBInstance.create = async (path?: string, options?: Record<string, string>) => {
    const process = current();
    if (process === undefined) return create(path, options);
    const instance = await process.scheduler.outside(process, () => create(path, { ...options, threads: '1' }));
    process.natives.add(instance);
    return instance;
  };
  const connect = DuckDBInstance.prototype.connect;
  DuckDBInstance.prototype.connect = async function (this: DuckDBInstance) {
    const process = current();
    if (process === undefined) return connect.call(this);
    const connection = await process.scheduler.outside(process, () => connect.call(this));
    process.natives.add(connection);
    return connection;
  };
}

/**
 * Closes what a killed process had open in DuckDB. Closing writes to its files, so that their content at the time of the kill
 * is restored.
 */
export function closeAfterDeath(process: MachineProcess): void {
  const before = [...process.databases].flatMap((file) => [file, `${file}.wal`]);
  const texts = before.map((path) => (realFs.existsSync(path) ? realFs.readFileSync(path) : undefined));
  for (const native of [...process.natives].reverse()) native.closeSync();
  for (const [i, path] of before.entries()) {
    const text = texts[i];
    if (text === undefined) realFs.rmSync(path, { force: true });
    else realFs.writeFileSync(path, text);
  }
  for (const set of holders.values()) for (const one of set) if (one.process === process) set.delete(one);
  process.databases.clear();
  process.natives.clear();
}
