import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import folders from './folders.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../..');

/** Folder of src → the tests that are about it. Tests of other folders run its code too, but are slow and about theirs. */
export const FOLDERS = folders;

export const reportOf = (folder) => `.mutation/${folder.replaceAll('/', '-')}`;

/**
 * What Stryker changes in a folder: all of it, or a share of its lines. The lines are drawn by chance, but always the same ones, so
 * that a larger share has those of a smaller one. What spans several lines, such as a block, is not tried unless all of them are drawn.
 */
export function mutatedIn(folder, share) {
  if (share === 1) return [`src/${folder}/**/*.ts`];
  const drawn = (path, line) =>
    createHash('sha256').update(`${path}:${line}`).digest().readUInt32BE() < share * 2 ** 32;
  const names = readdirSync(join(ROOT, 'src', folder), { recursive: true }).filter((name) => name.endsWith('.ts'));
  return names.flatMap((name) => {
    const path = `src/${folder}/${name}`;
    const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
    return lines.flatMap((text, at) =>
      text.trim() !== '' && drawn(path, at + 1) ? [`${path}:${at + 1}-${at + 1}`] : [],
    );
  });
}
