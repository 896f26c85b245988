// Files that a user has named: how JSON is read, which files may be replaced, and how a small one is written.

import { isUtf8 } from 'node:buffer';
import { closeSync, existsSync, lstatSync, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { configError, messageOf } from '../base/errors.ts';
import { replaceFile } from './atomic-file.ts';
import { diskError, whyUnreadable } from './disk-failure.ts';
import { checkLocalPath } from './local-path.ts';
import { isForeignOwner, PERMISSION_BITS } from './permissions.ts';

/**
 * The path under which a file is replaced: for a link, the file that it leads to, if there is one. Undefined for a
 * device or a pipe, which is written as it is. Throws the system's error. An address, a link of another user and a
 * DuckDB database are configuration failures. The database may be the place that was loaded.
 */
export function replaceablePath(path: string): string | undefined {
  checkLocalPath(path);
  const link = lstatSync(path, { throwIfNoEntry: false });
  if (link?.isSymbolicLink() && isForeignOwner(link.uid)) {
    throw configError(`${path} is a link that another user made: give another path, or remove it.`);
  }
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return path;
  if (stat.isFile() && isDuckDbFile(path)) {
    throw configError(`${path} is a DuckDB database, which is not replaced: give another path, or remove it.`);
  }
  return stat.isFile() || stat.isDirectory() ? realpathSync(path) : undefined;
}

/** True for a file with the magic bytes of a DuckDB database, after its first checksum. */
export function isDuckDbFile(path: string): boolean {
  const bytes = Buffer.alloc(12);
  const file = openSync(path, 'r');
  try {
    return readSync(file, bytes, 0, bytes.length, 0) === bytes.length && bytes.toString('latin1', 8) === 'DUCK';
  } finally {
    closeSync(file);
  }
}

/** Throws a configuration failure for a file that is a mount itself, as in a container: it cannot be replaced. */
export function checkNotMounted(path: string): void {
  const mounts = existsSync('/proc/self/mountinfo') ? readFileSync('/proc/self/mountinfo', 'utf8') : '';
  const mountPoints = mounts.split('\n').map((line) => unescaped(line.split(' ')[4] ?? ''));
  if (!mountPoints.includes(realpathSync(path))) return;
  const message = `${path} is a mount of its own, which cannot be replaced: mount its folder instead. Nothing was done.`;
  throw configError(message, { where: { file: path } });
}

/** A mount point without the octal escapes of its spaces. */
const unescaped = (point: string): string =>
  point.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));

/**
 * Writes a small file that a user has named; without `mode` others may read a new one. A reader sees the old text or
 * the new one, whole. A device or a pipe is written as it is. Throws a UserError, which calls the file `subject`.
 */
export async function writeNamedFile(path: string, text: string, subject: string, mode = 0o644): Promise<void> {
  try {
    const realPath = replaceablePath(path);
    if (realPath === undefined) return await writeFile(path, text);
    const { mode: newMode = mode } = statSync(realPath, { throwIfNoEntry: false }) ?? {};
    await replaceFile(realPath, text, { mode: newMode & PERMISSION_BITS });
  } catch (error) {
    throw diskError(error, { subject, path });
  }
}

/**
 * Reads and parses a JSON file that the user named. Throws a configuration failure that names `subject` (`the
 * configuration file`) and the path. `mayBeEmpty`: an empty file is undefined, since platforms write one for an absent
 * value.
 */
export function readJsonFile(path: string, subject: string, { mayBeEmpty = false } = {}): unknown {
  const where = { file: path };
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw configError(`${subject} ${path} cannot be read: ${whyUnreadable(cause)}.`, { cause, where });
  }
  if (!isUtf8(bytes)) throw configError(`${subject} ${path} is not UTF-8: save it as UTF-8.`, { where });
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (mayBeEmpty && text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw configError(`${subject} ${path} is not valid JSON${faultIn(text, messageOf(error))}.`, { where });
  }
}

/** Where the parser has found a fault, if it says so. Its own message quotes the text there, which may be a token. */
function faultIn(text: string, message: string): string {
  if (message === 'Unexpected end of JSON input') return ': it ends too early';
  const [, position] = /at position (\d+)/.exec(message) ?? [];
  if (position === undefined) return '';
  const lines = text.slice(0, Number(position)).split('\n');
  return `: look at line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
}
