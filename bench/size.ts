import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Bytes of a file, or of all files of a folder. */
export async function sizeBelow(path: string): Promise<number> {
  const found = await stat(path);
  if (found.isFile()) return found.size;
  const sizes = await Promise.all((await readdir(path)).map((name) => sizeBelow(join(path, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}
