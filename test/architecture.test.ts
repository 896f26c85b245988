import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');

/** The folders of src, from the top: a folder imports from those below it, never the other way. */
const LAYERS = [
  'cli',
  'airbyte',
  'erasure',
  'targets',
  'engine',
  'storage',
  'table',
  'extract',
  'service',
  'http',
  'config',
  'cells',
  'fs',
  'simulator',
  'base',
];

/** What only one file may touch, and which. */
const OWNED: readonly { readonly what: RegExp; readonly owner: string }[] = [
  { what: /\bprocess\.env\b/, owner: 'src/base/env.ts' },
  { what: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(/, owner: 'src/base/clock.ts' },
  { what: /\bMath\.random\(/, owner: 'src/base/runtime.ts' },
  { what: /\bprocess\.(exit|exitCode)\b/, owner: 'src/base/process.ts' },
  { what: /\bprocess\.kill\((?!\w+, 0\))/, owner: 'src/base/process.ts' },
  { what: /\bprocess\.kill\(\w+, 0\)/, owner: 'src/fs/process-identity.ts' },
  { what: /\bconsole\./, owner: 'nobody' },
];

/** Folders of the targets that several targets use. */
const SHARED = ['files'];

const ENGINES: readonly RegExp[] = [/^@duckdb\//, /^apache-arrow/];

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.parentPath.includes('node_modules'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const importsOf = (text: string) =>
  [...text.matchAll(/(?:from|import\()\s*'([^']+)'|^import '([^']+)'/gm)].map((match) => match[1] ?? match[2]);
/** The folders of src from which a file of src imports, and other folders, of which none may be; not those of data. */
const foldersImportedBy = (file: string): string[] =>
  importsOf(read(file)).flatMap((target) => {
    const [top = '', folder = ''] = relative(ROOT, resolve(ROOT, dirname(file), target)).split('/');
    if (!target.startsWith('.') || ['schemas', 'spec', 'package.json'].includes(top)) return [];
    return [top === 'src' ? folder : top];
  });
const withoutComments = (text: string) => text.replaceAll(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/.*$/gm, '');

const SRC = sources('src');
const FOLDERS = [...new Set(SRC.map((file) => dirname(file)))].filter((folder) => folder !== 'src');
const SELF = relative(ROOT, import.meta.filename);
const OWN = [...SRC, ...sources('connectors'), ...sources('bench'), ...sources('test')].filter((file) => file !== SELF);

describe('the structure', () => {
  it('lists the folders of src', () => {
    expect([...new Set(FOLDERS.map((folder) => folder.split('/')[1]))].toSorted()).toEqual(LAYERS.toSorted());
  });

  it.each(SRC)('%s imports only from the layers below it', (file) => {
    const folder = file.split('/')[1];
    if (folder === 'index.ts') return;
    const allowed = folder === 'simulator' ? ['simulator', 'base'] : LAYERS.slice(LAYERS.indexOf(folder));
    for (const imported of foldersImportedBy(file)) {
      expect(allowed, `${file} imports ${imported}`).toContain(imported);
    }
  });

  it.each(SRC.filter((file) => file.startsWith('src/targets/') && file.split('/').length > 3))(
    '%s imports no other target',
    (file) => {
      const own = file.split('/')[2];
      for (const target of importsOf(read(file)).filter((name) => name.startsWith('.'))) {
        const path = relative(join(ROOT, 'src'), resolve(ROOT, dirname(file), target));
        const [top, folder = '', ...rest] = path.split('/');
        if (top !== 'targets') continue;
        // The list of all targets knows each of them: a target that imported it would import the others.
        expect(folder, `${file} imports ${target}`).not.toBe('targets.ts');
        if (rest.length > 0) expect([own, ...SHARED], `${file} imports ${target}`).toContain(folder);
      }
    },
  );

  it.each(SRC)('%s leaves DuckDB and Arrow to the engine and the targets', (file) => {
    const engines = importsOf(read(file)).filter((name) => ENGINES.some((engine) => engine.test(name)));
    if (!/^src\/(engine|targets)\//.test(file)) expect(engines).toEqual([]);
  });

  it.each(OWN)('%s has no cast through unknown', (file) => {
    expect(withoutComments(read(file))).not.toMatch(/\bas unknown as\b/);
  });

  it.each(FOLDERS)('%s says in one file what it is for', (folder) => {
    const files = SRC.filter((file) => dirname(file) === folder);
    expect(files.filter((file) => read(file).startsWith('// This folder'))).toHaveLength(1);
  });

  it.each(SRC)('%s touches no global that another file owns', (file) => {
    const code = withoutComments(read(file));
    for (const { what, owner } of OWNED) if (file !== owner) expect(code, String(what)).not.toMatch(what);
  });
});

interface Locked {
  readonly integrity?: string;
  readonly dependencies?: object;
  readonly optionalDependencies?: object;
}

describe('the package', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;

  it('pins every dependency to one version', () => {
    const all = { ...manifest.dependencies, ...manifest.devDependencies };
    expect(Object.keys(all).length).toBeGreaterThan(5);
    for (const [name, version] of Object.entries(all)) expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
  });

  it('has a lock file that is whole, and holds a hash of every package', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> };
    const names = Object.keys(packages).map((path) => path.slice(path.lastIndexOf('node_modules/') + 13));
    const wanted = Object.values(packages).flatMap((one) => [
      ...Object.keys(one.dependencies ?? {}),
      ...Object.keys(one.optionalDependencies ?? {}),
    ]);
    expect([...new Set(wanted)].filter((name) => !names.includes(name))).toEqual([]);
    const bare = Object.entries(packages).filter(
      ([path, { integrity = '' }]) => path !== '' && !/^sha512-/.test(integrity),
    );
    expect(bare.map(([path]) => path)).toEqual([]);
  });

  it('has a lock file that names no host', () => {
    expect(read('package-lock.json')).not.toMatch(/"resolved": "http/);
  });
});
