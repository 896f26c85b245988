// What a run does to a folder, step by step, and what the disk has if the run ends there. It stands between the program
// on one side, and `node:fs`, DuckDB and the bucket of the tests on the other.

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DuckDBConnection } from '@duckdb/node-api';
import { DEAD_PID } from './processes/lock-owner.ts';
import type { FakeS3 } from './targets/fake-s3.ts';

type Call = (...args: unknown[]) => unknown;

/**
 * What is there if a run ends at a step. `killed`: all that it did. `power cut`: what it synced, bytes and names.
 * `names alone`: every name that it made, with the bytes that it synced: a disk may keep names before bytes.
 */
const ENDS = ['killed', 'power cut', 'names alone'] as const;

interface Kept {
  readonly bytes: Buffer;
  /** Time of the last change (ms since 1970). */
  readonly modified: number;
}

/** Files by their path from the folder; undefined for a folder. */
type World = ReadonlyMap<string, Kept | undefined>;
type Objects = FakeS3['objects'];

/** A step at which the run may have ended. */
interface Cut {
  /** `power cut after fsync ledger/ledger.jsonl` */
  readonly name: string;
  /** True once the work was done: nothing of it may get lost any more. */
  readonly isDone: boolean;
  /** What the test had noted before. */
  readonly notes: readonly string[];
  /** Makes the folder, and the bucket, what they would be. */
  restore(): void;
}

export interface Recording {
  /**
   * What became durable, in this order: `store PATH`, `remove PATH`, `append PATH`, `name PATH`, `commit`, and the notes of the
   * test. A step that comes too early or never says so.
   */
  readonly steps: readonly string[];
  /** Every step, without those that leave the same as an earlier one. */
  readonly cuts: readonly Cut[];
}

export interface RecorderOptions {
  readonly folder: string;
  readonly bucket?: FakeS3 | undefined;
  /** How a path is told; undefined for one that is not. By default locks and the folders of runs are not. */
  readonly tell?: (path: string) => string | undefined;
  /** Files whose sync takes a while: a step that does not wait for it comes too early. */
  readonly slow?: RegExp;
  /** How what was appended to a file is told, line by line. */
  readonly appended?: (path: string, line: string) => string;
}

const PASSING = /(^|[./])(lock|tmp)$|(^|\/)(_dfinery\/tmp|spool)(\/|$)/;
const DATABASE = /\.duckdb(\.rewriting)?(\.[0-9a-f]+\.tmp)?(\.wal)?$/;
/** Statements after which DuckDB has synced its files. */
const SYNCS = /^\s*(COMMIT|CHECKPOINT|ATTACH|DETACH)\b/i;
const S3_CHANGES: ReadonlyMap<string, string> = new Map([
  ['PutObject', 'store'],
  ['DeleteObject', 'remove'],
]);
/** A machine is not up again at once: who was alive before is silent for long. */
const DOWN_MS = 120_000;

/** Runs work, and records what it does to a folder and a bucket. What it throws is thrown. */
export async function record(options: RecorderOptions, work: (note: (step: string) => void) => Promise<unknown>) {
  const recorder = new Recorder(options);
  const restore = await intercept(recorder);
  try {
    await work((step) => recorder.note(step));
  } finally {
    restore();
    recorder.end();
  }
  return recorder.recording;
}

class Recorder {
  readonly recording: { readonly steps: string[]; readonly cuts: Cut[] } = { steps: [], cuts: [] };
  readonly options: Required<Pick<RecorderOptions, 'tell' | 'appended'>> & RecorderOptions;
  readonly #disk: Disk;
  readonly #pending = new Map<string, 'store' | 'remove' | 'name'>();
  readonly #notes: string[] = [];
  readonly #seen = new Set<string>();
  /** The database files as they were at the last commit. */
  #databases = '';

  constructor(options: RecorderOptions) {
    this.options = {
      tell: (path) => (PASSING.test(path) ? undefined : path),
      appended: (path) => `append ${path}`,
      ...options,
      folder: resolve(options.folder),
    };
    this.#disk = new Disk(this.options.folder);
    this.#databases = this.#disk.databases();
    this.#cut('the start');
  }

  note(step: string): void {
    this.#notes.push(step);
    this.#say(step);
    this.#cut(step);
  }

  /** True for a path in the folder. */
  owns(path: string): boolean {
    return resolve(path) === this.options.folder || resolve(path).startsWith(`${this.options.folder}/`);
  }

  changed(call: string, path: string): void {
    if (!PASSING.test(this.#pathOf(path))) this.#cut(`${call} ${this.#pathOf(path)}`);
  }

  named(call: string, path: string): void {
    if (this.#tell(path) !== undefined) {
      this.#pending.set(resolve(path), 'store');
      if (!this.#disk.isSynced(path)) this.#say(`${this.#tell(path)} gets its name before its bytes are synced`);
    }
    this.changed(call, path);
  }

  removed(call: string, path: string): void {
    if (this.#tell(path) !== undefined) this.#pending.set(resolve(path), 'remove');
    this.changed(call, path);
  }

  synced(call: string, path: string): void {
    const before = this.#disk.sync(path);
    for (const [pending, how] of this.#pending) {
      if (dirname(pending) !== resolve(path)) continue;
      this.#say(`${how} ${this.#tell(pending)}`);
      this.#pending.delete(pending);
    }
    if (before !== undefined && this.#tell(path) !== undefined) {
      this.#tellAppended(path, before);
      if (!this.#disk.isNamed(path)) this.#pending.set(resolve(path), 'name');
    }
    this.changed(call, path);
  }

  #tellAppended(path: string, before: string): void {
    const after = fs.readFileSync(path, 'utf8');
    const isLonger = after.startsWith(before);
    const lines = isLonger ? after.slice(before.length).split('\n').filter(Boolean) : [];
    for (const line of lines) this.#say(this.options.appended(this.#tell(path) ?? '', line));
    if (!isLonger) this.#say(`overwrite ${this.#tell(path)}`);
  }

  queried(sql: string): void {
    if (!SYNCS.test(sql)) return;
    const databases = this.#disk.databases();
    this.#disk.syncDatabases();
    if (/^\s*COMMIT\b/i.test(sql) && databases !== this.#databases) this.#say('commit');
    this.#databases = databases;
    this.#cut(sql.trim().slice(0, 10));
  }

  requested(what: string, key: string): void {
    const how = S3_CHANGES.get(what);
    if (how === undefined) return;
    if (this.#tell(key) !== undefined) this.#say(`${how} ${this.#tell(key)}`);
    this.#cut(`${what} ${key}`);
  }

  end(): void {
    for (const [path, how] of this.#pending) this.#say(`${how} ${this.#tell(path)}, never synced`);
    this.#cut('the end', true);
    this.#disk.close();
  }

  #say(step: string): void {
    this.recording.steps.push(step);
  }

  #pathOf = (path: string): string => relative(this.options.folder, resolve(path));

  #tell(path: string): string | undefined {
    return this.options.tell(path.startsWith('/') ? this.#pathOf(path) : path);
  }

  #cut(after: string, isDone = false): void {
    const { folder, bucket } = this.options;
    const objects: Objects = new Map(bucket?.objects);
    const notes = [...this.#notes];
    for (const end of ENDS) {
      const world = this.#disk.world(end);
      const versions = [...objects].map(([key, { modified }]) => `${key} ${+modified}`);
      const id = `${isDone} ${notes.length} ${idOf(world)} ${versions}`;
      if (this.#seen.has(id)) continue;
      this.#seen.add(id);
      const restore = () => {
        write(folder, world);
        bucket?.objects.clear();
        for (const [key, held] of objects) bucket?.objects.set(key, held);
      };
      this.recording.cuts.push({ name: `${end} after ${after}`, isDone, notes, restore });
    }
  }
}

/** A folder as the disk has it: what of its bytes and names was synced. All that is there at first was. */
class Disk {
  readonly #folder: string;
  readonly #bytes = new Map<number, Kept>();
  readonly #names = new Map<number, ReadonlyMap<string, number>>();
  /** Descriptors that keep the number of a removed file from being given to another one. */
  readonly #held = new Map<number, number>();

  constructor(folder: string) {
    this.#folder = folder;
    for (const path of ['', ...this.#paths()]) this.sync(join(folder, path));
  }

  /** Returns the text of a file as it was synced before; undefined for a folder, and for what did not change. */
  sync(path: string): string | undefined {
    const id = this.#idOf(path);
    if (id === undefined) return undefined;
    if (fs.lstatSync(path).isDirectory()) {
      const names = fs.readdirSync(path).map((name) => [name, this.#idOf(join(path, name)) ?? 0] as const);
      this.#names.set(id, new Map(names));
      return undefined;
    }
    const before = this.#bytes.get(id);
    const now = keptAt(path);
    this.#bytes.set(id, now);
    return before?.bytes.equals(now.bytes) ? undefined : (before?.bytes.toString() ?? '');
  }

  /** True if the name of a file is on the disk. */
  isNamed(path: string): boolean {
    return this.#names.get(this.#idOf(dirname(path)) ?? 0)?.get(basename(path)) === this.#idOf(path);
  }

  isSynced(path: string): boolean {
    const id = this.#idOf(path);
    return id !== undefined && this.#bytes.get(id)?.bytes.equals(fs.readFileSync(path)) === true;
  }

  /** Bytes and names of DuckDB's own files, which it syncs by itself. */
  syncDatabases(): void {
    for (const path of this.#paths()) if (DATABASE.test(path)) this.sync(join(this.#folder, path));
    const root = this.#idOf(this.#folder) ?? 0;
    const names = new Map([...(this.#names.get(root) ?? [])].filter(([name]) => !DATABASE.test(name)));
    for (const name of fs.readdirSync(this.#folder)) {
      if (DATABASE.test(name)) names.set(name, this.#idOf(join(this.#folder, name)) ?? 0);
    }
    this.#names.set(root, names);
  }

  databases(): string {
    const paths = this.#paths().filter((path) => DATABASE.test(path));
    return idOf(new Map(paths.map((path) => [path, keptAt(join(this.#folder, path))])));
  }

  world(end: (typeof ENDS)[number]): World {
    if (end === 'power cut') return new Map(this.#synced(this.#idOf(this.#folder) ?? 0, ''));
    const entries = this.#paths().map((path): [string, Kept | undefined] | undefined => {
      const full = join(this.#folder, path);
      try {
        if (fs.lstatSync(full).isDirectory()) return [path, undefined];
        const id = this.#idOf(full) ?? 0;
        return [path, end === 'killed' ? keptAt(full) : (this.#bytes.get(id) ?? NOTHING)];
      } catch (error) {
        // Another step of the same commit has just moved or removed it.
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
        throw error;
      }
    });
    return new Map(entries.filter((entry) => entry !== undefined));
  }

  close(): void {
    for (const descriptor of this.#held.values()) fs.closeSync(descriptor);
  }

  *#synced(folder: number, path: string): Generator<[string, Kept | undefined]> {
    for (const [name, id] of this.#names.get(folder) ?? []) {
      const isFolder = fs.fstatSync(this.#held.get(id) ?? 0).isDirectory();
      yield [join(path, name), isFolder ? undefined : (this.#bytes.get(id) ?? NOTHING)];
      if (isFolder) yield* this.#synced(id, join(path, name));
    }
  }

  #idOf(path: string): number | undefined {
    const stat = fs.lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    if (!this.#held.has(stat.ino)) this.#held.set(stat.ino, fs.openSync(path, 'r'));
    return stat.ino;
  }

  #paths(): string[] {
    return fs.readdirSync(this.#folder, { recursive: true, encoding: 'utf8' }).sort();
  }
}

const NOTHING: Kept = { bytes: Buffer.alloc(0), modified: 0 };

const keptAt = (path: string): Kept => ({
  bytes: fs.readFileSync(path),
  modified: fs.lstatSync(path).mtimeMs,
});

function idOf(world: World): string {
  const hash = createHash('sha1');
  for (const [path, kept] of world) if (!PASSING.test(path)) hash.update(`${path}\0`).update(kept?.bytes ?? '/');
  return hash.digest('hex');
}

/** Makes a folder what it would be after a restart: no process of before lives. */
function write(folder: string, world: World): void {
  for (const name of fs.readdirSync(folder)) fs.rmSync(join(folder, name), { recursive: true });
  for (const [path, kept] of world) {
    const full = join(folder, path);
    if (kept === undefined) fs.mkdirSync(full, { mode: 0o700 });
    else {
      const isOwners = /lock$/.test(basename(path));
      const bytes = isOwners ? kept.bytes.toString().replace(/"pid":\d+/, `"pid":${DEAD_PID}`) : kept.bytes;
      fs.writeFileSync(full, bytes, { mode: 0o600 });
      const modified = kept.modified === 0 || isOwners ? Date.now() - DOWN_MS : kept.modified;
      fs.utimesSync(full, modified / 1_000, modified / 1_000);
    }
  }
  const folders = [...world].filter(([, kept]) => kept === undefined).map(([path]) => join(folder, path));
  const long = (Date.now() - DOWN_MS) / 1_000;
  for (const path of folders) fs.utimesSync(path, long, long);
}

const SLOW_MS = 200;
const NAMING = ['rename', 'link'];
const REMOVING = ['unlink', 'rm'];
const OTHER = ['rmdir', 'mkdir', 'mkdtemp', 'copyFile', 'writeFile', 'appendFile', 'truncate'];
const OF_HANDLES = ['write', 'writev', 'writeFile', 'appendFile', 'truncate', 'sync', 'datasync'];
const OF_DESCRIPTORS = ['write', 'ftruncate', 'fsync', 'fdatasync'];

/** One call that is done: its arguments, its result, and the object of which it is a method. */
interface FinishedCall {
  readonly args: readonly unknown[];
  readonly result: unknown;
  readonly self: unknown;
}

/** Puts the recorder between the program and the system; returns a function that takes it away. */
async function intercept(recorder: Recorder): Promise<() => void> {
  const undo: (() => void)[] = [];
  /** The paths of open files, by handle or descriptor. */
  const openPaths = new Map<unknown, string>();
  let isReporting = false;
  const pauseIfSlow = async (handle: unknown) => {
    if (recorder.options.slow?.test(openPaths.get(handle) ?? '') === true) await delay(SLOW_MS);
  };
  /** From now on reports each call of a method that `concerns` the recorder, once it is done. */
  const observe = (
    object: object,
    name: string,
    concerns: (call: Omit<FinishedCall, 'result'>) => boolean,
    report: (call: FinishedCall) => void,
  ) => {
    const methods = object as Record<string, Call>;
    const real = methods[name];
    undo.push(() => {
      methods[name] = real;
    });
    methods[name] = function (this: unknown, ...args) {
      // The recorder reads files, too.
      if (isReporting || !concerns({ args, self: this })) return real.apply(this, args);
      const finish = (result: unknown) => {
        isReporting = true;
        try {
          report({ args, result, self: this });
        } finally {
          isReporting = false;
        }
        return result;
      };
      const result = real.apply(this, args);
      if (!(result instanceof Promise)) return finish(result);
      return result.then(async (value) => {
        await pauseIfSlow(this);
        return finish(value);
      });
    };
  };

  const owns = (path: unknown) => typeof path === 'string' && recorder.owns(path);
  const ownsFile = (path: unknown) =>
    owns(path) && fs.lstatSync(String(path), { throwIfNoEntry: false })?.isFile() === true;
  const observePaths = (
    names: readonly string[],
    pathIndex: 0 | 1,
    report: (name: string, path: string) => void,
    ownsPath = owns,
  ) => {
    for (const name of names) {
      const reportCall = ({ args }: FinishedCall) => report(name, String(args[pathIndex]));
      observe(fs, `${name}Sync`, ({ args }) => ownsPath(args[pathIndex]), reportCall);
      observe(fs.promises, name, ({ args }) => ownsPath(args[pathIndex]), reportCall);
    }
  };
  observePaths(NAMING, 1, (name, path) => recorder.named(name, path));
  observePaths(REMOVING, 0, (name, path) => recorder.removed(name, path), ownsFile);
  observePaths(OTHER, 0, (name, path) => recorder.changed(name, path));

  const reportOpened = ({ args: [path, flags = 'r'], result: handle }: FinishedCall) => {
    openPaths.set(handle, String(path));
    if (flags !== 'r') recorder.changed('open', String(path));
  };
  observe(fs, 'openSync', ({ args }) => owns(args[0]), reportOpened);
  observe(fs.promises, 'open', ({ args }) => owns(args[0]), reportOpened);
  const reportUse = (name: string, path = '') =>
    /sync$/.test(name) ? recorder.synced('fsync', path) : recorder.changed(name, path);
  const handles = await handlePrototype();
  for (const name of OF_HANDLES) {
    const report = ({ self }: FinishedCall) => reportUse(name, openPaths.get(self));
    observe(handles, name, ({ self }) => openPaths.has(self), report);
  }
  for (const name of OF_DESCRIPTORS) {
    const report = ({ args }: FinishedCall) => reportUse(name, openPaths.get(args[0]));
    observe(fs, `${name}Sync`, ({ args }) => openPaths.has(args[0]), report);
  }
  observe(fs, 'closeSync', always, ({ args }) => void openPaths.delete(args[0]));

  const { bucket } = recorder.options;
  if (bucket !== undefined) {
    bucket.onExecuted = ({ what, key }) => recorder.requested(what, key);
    undo.push(() => {
      bucket.onExecuted = () => {};
    });
  }
  observe(DuckDBConnection.prototype, 'run', always, ({ args }) => recorder.queried(String(args[0])));
  syncBuiltinESMExports();
  return () => {
    for (const restore of undo.reverse()) restore();
    syncBuiltinESMExports();
  };
}

const always = () => true;

async function handlePrototype(): Promise<object> {
  const handle = await fs.promises.open(import.meta.filename);
  await handle.close();
  return Object.getPrototypeOf(handle);
}
