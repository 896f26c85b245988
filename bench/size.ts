import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Bytes of a file, or of all files of a folder. */
export async function sizeBelow(path: string): Promise<number> {
  const file = await stat(path);
  if (file.isFile()) return file.size;
  const sizes = await Promise.all((await readdir(path)).map((name) => sizeBelow(join(path, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}
