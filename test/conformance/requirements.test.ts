import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = readFileSync(join(ROOT, 'spec/requirements.md'), 'utf8');

interface Requirement {
  readonly number: number;
  readonly text: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}

const requirements: Requirement[] = PAGE.split(/^- \*\*R/m)
  .slice(1)
  .map((part) => ({
    number: Number(/^\d+/.exec(part)?.[0]),
    text: part,
    tests: [...part.matchAll(/^ {2}- `([^`]+)` › "(.+)"$/gm)].map(([, file, title]) => ({ file, title })),
  }));

/** The places where a test or group of tests gets this title. */
function isTitled(source: string, title: string): boolean {
  return ["'", '"', '`'].some(
    (quote) => source.includes(`(${quote}${title}${quote}`) || isOnItsOwnLine(source, quote + title + quote),
  );
}

/** Long calls have their title on a line of its own. */
const isOnItsOwnLine = (source: string, text: string): boolean =>
  source.split('\n').some((line) => line.trim() === `${text},`);

describe('spec/requirements.md', () => {
  it('gives each statement a number of its own', () => {
    expect(requirements.length).toBeGreaterThan(50);
    expect(new Set(requirements.map((r) => r.number)).size).toBe(requirements.length);
  });

  it.each(requirements.map((r) => [`R${r.number}`, r] as const))(
    '%s names tests that exist',
    (_name, { tests, text }) => {
      expect(tests.length).toBeGreaterThan(0);
      expect(text.split('\n').filter((line) => line.startsWith('  - ')).length).toBe(tests.length);
      for (const { file, title } of tests) {
        expect(existsSync(join(ROOT, file)), file).toBe(true);
        expect(isTitled(readFileSync(join(ROOT, file), 'utf8'), title), `${file} › ${title}`).toBe(true);
      }
    },
  );

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
