import type * as Fs from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { randomText } from './chance.ts';
import { simulatedTime } from './instants.ts';
import { renaming } from './names.ts';
import { forgetUnsynced, noteMade, noteUnsynced } from './power.ts';
import { current, type Effect, type MachineProcess } from './process.ts';
import { realFs } from './real-fs.ts';

/*
 * The file system of the machine: real files, but each call of a process is an event of the simulation, before which it may be
 * killed, and whose disk may be full. What stands for `node:fs` in the program under test.
 */

type Call = (...parameters: never[]) => unknown;
type AnyCall = (...parameters: readonly unknown[]) => unknown;

/** A function of a module by its name. */
function callOf(module: object, name: string): (...all: readonly unknown[]) => unknown {
  const found: unknown = Reflect.get(module, name);
  if (typeof found !== 'function') throw new Error(`no call ${name}`);
  return (...all) => Reflect.apply(found, module, all);
}

/** Calls that change something, and what kind of effect that is; the others only look. */
const EFFECTS: Readonly<Record<string, Effect>> = {
  writeFile: 'write',
  write: 'write',
  copyFile: 'write',
  truncate: 'write',
  ftruncate: 'write',
  rename: 'rename',
  link: 'rename',
  unlink: 'remove',
  rm: 'remove',
  rmdir: 'remove',
  mkdir: 'create',
  mkdtemp: 'create',
  chmod: 'create',
  chown: 'create',
  fsync: 'sync',
  fdatasync: 'sync',
};

const LOOKING = [
  'access',
  'close',
  'exists',
  'fstat',
  'lstat',
  'read',
  'readdir',
  'readFile',
  'readlink',
  'realpath',
  'stat',
  'statfs',
  'utimes',
] as const;

/**
 * Stats whose instants are the simulation's: files that a process stamped itself keep what it said. The device differs for each process
 * of the simulation, since a program remembers in its memory which files it has open.
 */
function asSeenBy<T>({ pid }: MachineProcess, found: T): T {
  if (typeof found !== 'object' || found === null || !('mtimeMs' in found && 'dev' in found)) return found;
  const stats = found as { mtimeMs: number | bigint; dev: number | bigint };
  const time = simulatedTime(Number(stats.mtimeMs));
  const isBig = typeof stats.mtimeMs === 'bigint';
  stats.mtimeMs = isBig ? BigInt(Math.round(time)) : time;
  stats.dev = isBig ? BigInt(pid) : pid;
  return found;
}

/** Does one call at once, as the process that runs now. */
function once(process: MachineProcess, name: string, parameters: readonly unknown[]): unknown {
  const sync = name === 'mkdtemp' ? makeTemporary : callOf(realFs, `${name}Sync`);
  const effect = effectOf(process, name, parameters);
  if (effect !== undefined) process.effect(effect);
  if (name === 'fsync' || name === 'fdatasync') return forgetUnsynced(parameters[0] as number);
  const changed = CHANGING[name]?.(parameters);
  const call = () => renaming(name, parameters, () => done(process, name, sync, parameters));
  if (changed === undefined) return call();
  const wasThere = noteUnsynced(changed);
  try {
    return call();
  } finally {
    if (!wasThere) noteMade(String(changed));
  }
}

function done(process: MachineProcess, name: string, sync: AnyCall, parameters: readonly unknown[]): unknown {
  if (name === 'write') return writeWithin(process, parameters);
  if (name === 'writeFile') return writeFileWithin(process, parameters);
  if (name === 'copyFile') process.room(realFs.statSync(parameters[0] as string).size);
  const found = sync(...parameters);
  if (name === 'readdir' && Array.isArray(found)) return found.sort(byName);
  return name.endsWith('stat') ? asSeenBy(process, found) : found;
}

/** The file whose bytes a call changes. */
const CHANGING: Readonly<Record<string, (parameters: readonly unknown[]) => unknown>> = {
  writeFile: ([file]) => file,
  write: ([file]) => file,
  truncate: ([file]) => file,
  ftruncate: ([file]) => file,
  copyFile: ([, to]) => to,
  open: ([file, flags]) => (effectOfOpen(flags) === undefined ? undefined : file),
};

/** How long a call takes. */
const timeOf = ({ diskMs }: MachineProcess, name: string): number =>
  diskMs > 0 && (EFFECTS[name] === 'write' || EFFECTS[name] === 'sync') ? diskMs : 0;

const byName = (a: unknown, b: unknown): number => (nameOf(a) < nameOf(b) ? -1 : 1);
const nameOf = (entry: unknown): string =>
  typeof entry === 'object' && entry !== null && 'name' in entry ? String(entry.name) : String(entry);

/** Moves into the target, and removals from it, are told from all others; the folder of its data may only begin with its path. */
function effectOf({ place }: MachineProcess, name: string, parameters: readonly unknown[]): Effect | undefined {
  if (name === 'open') return effectOfOpen(parameters[1]);
  const effect = EFFECTS[name];
  const path = effect === 'rename' ? parameters[1] : effect === 'remove' ? parameters[0] : undefined;
  return place !== undefined && typeof path === 'string' && dirname(path).startsWith(place) ? 'store' : effect;
}

function effectOfOpen(flags: unknown): Effect | undefined {
  const { O_CREAT } = realFs.constants;
  const makes = typeof flags === 'number' ? (flags & O_CREAT) !== 0 : /[wa]/.test(String(flags ?? 'r'));
  return makes ? 'create' : undefined;
}

function makeTemporary(prefix: unknown): string {
  const path = `${prefix}${randomText(6)}`;
  realFs.mkdirSync(path, { mode: 0o700 });
  return path;
}

function writeWithin(process: MachineProcess, [fd, data, ...rest]: readonly unknown[]): number {
  const isText = typeof data === 'string';
  const bytes = isText ? Buffer.from(data) : (data as Uint8Array);
  const [first, second, third] = rest as (number | null | undefined)[];
  const [offset, length, position] = isText ? [0, bytes.length, first] : [first ?? 0, second, third];
  const wanted = length ?? bytes.length - offset;
  // What is written over needs no room.
  const over = typeof position === 'number' ? realFs.fstatSync(fd as number).size - position : 0;
  const covered = Math.min(wanted, Math.max(0, over));
  return realFs.writeSync(fd as number, bytes, offset, covered + process.room(wanted - covered), position ?? null);
}

function writeFileWithin(process: MachineProcess, [path, data, options]: readonly unknown[]): void {
  const bytes = typeof data === 'string' ? Buffer.from(data) : (data as Uint8Array);
  const how = options as Fs.WriteFileOptions;
  if (bytes.length <= process.diskLeft) {
    process.room(bytes.length);
    realFs.writeFileSync(path as string, bytes, how);
    return;
  }
  realFs.writeFileSync(path as string, bytes.subarray(0, process.diskLeft), how);
  process.diskLeft = 0;
  process.room(1);
}

function synchronous(name: string): Call {
  const original = callOf(realFs, `${name}Sync`);
  return (...parameters: readonly unknown[]) => {
    const process = current();
    return process === undefined ? original(...parameters) : once(process, name, parameters);
  };
}

function promised(name: string): Call {
  const original = callOf(realFs.promises, name);
  return (...parameters: readonly unknown[]) => {
    const process = current();
    return process === undefined
      ? original(...parameters)
      : process.turn(() => once(process, name, parameters), timeOf(process, name));
  };
}

/** Calls with a callback, as streams use them. */
function called(name: string): Call {
  const original = callOf(realFs, name);
  return (...all: readonly unknown[]) => {
    const process = current();
    const done = all.at(-1);
    if (process === undefined || typeof done !== 'function') return void original(...all);
    process
      .turn(() => once(process, name, all.slice(0, -1)), timeOf(process, name))
      .then(
        (found) => done(null, found, all[1]),
        (error) => done(error),
      );
  };
}

/** Replaces the result of `open` of `node:fs/promises`, as far as the program uses it. */
class FileHandle {
  readonly fd: number;
  readonly #process: MachineProcess;

  constructor(fd: number, process: MachineProcess) {
    this.fd = fd;
    this.#process = process;
  }

  #turn(name: string, ...parameters: readonly unknown[]): Promise<unknown> {
    return this.#process.turn(() => once(this.#process, name, [this.fd, ...parameters]), timeOf(this.#process, name));
  }

  async write(...parameters: readonly unknown[]) {
    return { bytesWritten: (await this.#turn('write', ...parameters)) as number, buffer: parameters[0] };
  }

  async read(...parameters: readonly unknown[]) {
    return { bytesRead: (await this.#turn('read', ...parameters)) as number, buffer: parameters[0] };
  }

  writeFile = (data: unknown, options?: unknown) => this.#turn('writeFile', data, options);
  appendFile = (data: unknown, options?: unknown) => this.#turn('writeFile', data, options);
  readFile = (options?: unknown) => this.#turn('readFile', options);
  stat = (options?: unknown) => this.#turn('fstat', options);
  truncate = (length?: number) => this.#turn('ftruncate', length);
  sync = () => this.#turn('fsync');
  datasync = () => this.#turn('fdatasync');
  close = () => this.#turn('close');
}

const named = (names: readonly string[], make: (name: string) => Call, suffix = '') =>
  Object.fromEntries(names.map((name) => [`${name}${suffix}`, make(name)]));

const ALL = [...Object.keys(EFFECTS), ...LOOKING, 'open'];
const CALLED = ['open', 'close', 'read', 'write', 'fstat'];
const onlyPromised = ALL.filter((name) => name in realFs.promises && name !== 'open');

const streams = named(CALLED, called);
Object.assign(streams.read, {
  [promisify.custom]: async (fd: number, buffer: Uint8Array, ...rest: readonly number[]) => {
    const process = current();
    const work = () => once(process as MachineProcess, 'read', [fd, buffer, ...rest]);
    const [offset, length, position] = rest;
    const now = () => realFs.readSync(fd, buffer, offset, length, position);
    return { bytesRead: process === undefined ? now() : await process.turn(work), buffer };
  },
});

/** Replaces `node:fs`. */
export const simulatedFs = {
  ...realFs,
  ...named(
    ALL.filter((name) => `${name}Sync` in realFs),
    synchronous,
    'Sync',
  ),
  ...streams,
  createReadStream: (path: string, options: object = {}) =>
    realFs.createReadStream(path, current() === undefined ? options : ({ ...options, fs: streams } as object)),
  createWriteStream: (path: string, options: object = {}) =>
    realFs.createWriteStream(path, current() === undefined ? options : ({ ...options, fs: streams } as object)),
};

/** Replaces `node:fs/promises`. */
export const simulatedFsPromises = {
  ...realFs.promises,
  ...named(onlyPromised, promised),
  async open(path: string, ...rest: readonly (string | number | undefined)[]) {
    const process = current();
    if (process === undefined) return realFs.promises.open(path, ...(rest as [string, number]));
    const fd = await process.turn(() => once(process, 'open', [path, rest[0] ?? 'r', rest[1]]));
    return new FileHandle(fd as number, process);
  },
};
