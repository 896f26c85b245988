import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = readFileSync(join(ROOT, 'spec/requirements.md'), 'utf8');

const numbers = [...PAGE.matchAll(/^- \*\*R(\d+)\*\*/gm)].map((match) => match[1]);

/** The numbers of the tags at the end of the titles in the tests: `it('a tag is read once [R4]', …)`. */
const tagged = new Set(
  readdirSync(join(ROOT, 'test'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(test\.ts|py)$/.test(entry.name))
    .filter((entry) => !entry.parentPath.includes('node_modules'))
    .flatMap((entry) => [
      ...readFileSync(join(entry.parentPath, entry.name), 'utf8').matchAll(/(?:\[R\d+\])+(?=['"`])/g),
    ])
    .flatMap(([tags]) => [...tags.matchAll(/\d+/g)].map(([number]) => number)),
);

describe('spec/requirements.md', () => {
  it('gives each statement a number of its own', () => {
    expect(numbers.length).toBeGreaterThan(50);
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it('has a test with its tag for each statement', () => {
    expect(numbers.filter((number) => !tagged.has(number))).toEqual([]);
  });

  it('has a statement for each tag', () => {
    expect([...tagged].filter((number) => !numbers.includes(number))).toEqual([]);
  });

  it('explains every S number that the code cites', () => {
    const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((f) =>
      f.endsWith('.ts'),
    );
    const cited = files.flatMap((file) => [
      ...readFileSync(join(ROOT, 'src', file), 'utf8').matchAll(/\bS([1-9]\d?)\b(?=[,)\s:.])/g),
    ]);
    const known = new Set([...PAGE.matchAll(/\(S(\d+)\)/g)].map((match) => match[1]));
    expect([...new Set(cited.map((match) => match[1]))].filter((number) => !known.has(number))).toEqual([]);
    expect(known.size).toBeGreaterThanOrEqual(50);
  });
});
