// Whether this user can write or replace a file: asked before anything is changed.

import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { mkdtemp, open, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { configError } from '../base/errors.ts';

/** Throws the system's error if a file, or the folder of it, cannot be written. The file stays as it is. */
export async function checkWritable(path: string): Promise<void> {
  let folder = dirname(path);
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  await rmdir(await mkdtemp(join(folder, '.dfinery-try-')));
  if (existsSync(path)) await (await open(path, 'a')).close();
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
