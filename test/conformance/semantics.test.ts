import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const rules = [...readFileSync(join(ROOT, 'spec/semantics.md'), 'utf8').matchAll(/^- \*\*S(\d+)\*\* /gm)].map(
  ([, number]) => Number(number),
);

const FOLDERS = ['src', 'test', 'docs', 'bench', 'connectors', 'spec'];
const under = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`);

const files = [...FOLDERS.flatMap(under), ...readdirSync(ROOT).filter((file) => file.endsWith('.md'))].filter(
  (file) => /\.(ts|mjs|md|py)$/.test(file) && !file.includes('node_modules'),
);

const cited = (file: string): number[] =>
  [...readFileSync(join(ROOT, file), 'utf8').matchAll(/\bS([1-9]\d?)\b(?!\d|\.\w)/g)].map(([, number]) =>
    Number(number),
  );

describe('spec/semantics.md', () => {
  it('has the rules in order, each once', () => {
    expect(rules.length).toBeGreaterThanOrEqual(52);
    expect(rules).toEqual([...new Set(rules)].sort((a, b) => a - b));
  });

  it('has every rule that a comment, a test or a page cites', () => {
    const citations = files.map((file) => ({ file, cited: cited(file) }));
    expect(citations.flatMap((one) => one.cited).length).toBeGreaterThan(100);
    const unknown = citations.flatMap(({ file, cited }) =>
      cited.filter((number) => !rules.includes(number)).map((number) => `${file} cites S${number}`),
    );
    expect(unknown).toEqual([]);
  });
});
