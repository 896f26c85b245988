import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands/commands.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDERS = ['docs', 'docs/dev', 'spec'];
const PAGES = [
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md'],
  ...FOLDERS.flatMap((folder) => readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`)),
].filter((name) => name.endsWith('.md'));
/** The folders of the repository: text that begins with one of them is a path. */
const PATH = /(?<![\w./{}$-])(?:src|test|docs|spec|schemas|connectors|examples)\/[\w./-]*\w/g;

it('each statement of spec/promises.md names a test that exists', () => {
  const text = readFileSync(join(ROOT, 'spec/promises.md'), 'utf8');
  const statements = text.split('\n').filter((line) => /^\d+\. /.test(line));
  expect(statements.length).toBeGreaterThan(50);
  const tests = statements.map((line) => /`(test\/[\w./-]+)`$/.exec(line)?.[1] ?? line);
  expect(tests.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it.each(['source', 'destination'])('the page of the %s connector names every configuration key', (kind) => {
  const { properties } = JSON.parse(readFileSync(join(ROOT, `schemas/${kind}-config.json`), 'utf8'));
  const text = readFileSync(join(ROOT, `connectors/${kind}-dfinery/README.md`), 'utf8');
  expect(Object.keys(properties).filter((key) => !text.includes(`\`${key}\``))).toEqual([]);
});

it('docs/commands.md has every command in its first table', () => {
  const page = readFileSync(join(ROOT, 'docs/commands.md'), 'utf8').split('## Options')[0];
  expect(Object.keys(COMMANDS).filter((name) => !new RegExp(`^\\| \`${name}[ \`]`, 'm').test(page))).toEqual([]);
});

it('docs/dev/architecture.md names only files of src that exist', () => {
  const page = readFileSync(join(ROOT, 'docs/dev/architecture.md'), 'utf8');
  const named = [...page.matchAll(/`([\w-]+\/[\w./-]+\.ts)`/g)].map(([, path]) => path);
  const missing = named.filter((path) => ![path, `src/${path}`].some((one) => existsSync(join(ROOT, one))));
  expect(missing).toEqual([]);
});

describe.each(PAGES)('%s', (page) => {
  const text = readFileSync(join(ROOT, page), 'utf8').replaceAll(/(?:src|test)\/\S*NAME\S*/g, '');

  it('names only paths that exist', () => {
    const named = [...new Set(text.match(PATH) ?? [])];
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it('links only to files that exist', () => {
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link]) => link);
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(page), link)))).toEqual([]);
  });
});
