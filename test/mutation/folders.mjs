import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import folders from './folders.json' with { type: 'json' };

const ROOT = join(import.meta.dirname, '../..');

/** Folder of src → the tests that are about it. Tests of other folders run its code too, but are slow and about theirs. */
export const FOLDERS = folders;

export const reportOf = (folder) => `.mutation/${folder.replaceAll('/', '-')}`;

/**
 * What Stryker changes in a folder: all of it, or a share of its lines. Each line has a number from 0 to 1 that says nothing about it
 * and stays the same; those with one in `[from, to)` are changed. What spans several lines, such as a block, is changed only if all
 * of them are drawn.
 */
export function mutatedIn(folder, { from, to }) {
  if (from === 0 && to === 1) return [`src/${folder}/**/*.ts`];
  const numberOf = (path, line) => createHash('sha256').update(`${path}:${line}`).digest().readUInt32BE() / 2 ** 32;
  const drawn = (path, line) => from <= numberOf(path, line) && numberOf(path, line) < to;
  const names = readdirSync(join(ROOT, 'src', folder), { recursive: true }).filter((name) => name.endsWith('.ts'));
  return names.flatMap((name) => {
    const path = `src/${folder}/${name}`;
    const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
    return lines.flatMap((text, at) =>
      text.trim() !== '' && drawn(path, at + 1) ? [`${path}:${at + 1}-${at + 1}`] : [],
    );
  });
}

/** `0.1` is the first tenth of the lines, `0.1-0.2` another one; throws for what is neither. */
export function shareOf(text) {
  const [from, to] = text.includes('-') ? text.split('-').map(Number) : [0, Number(text)];
  if (!(from >= 0 && from < to && to <= 1)) throw new Error(`SHARE is such as 0.1 or 0.1-0.2, not ${text}`);
  return { from, to };
}
