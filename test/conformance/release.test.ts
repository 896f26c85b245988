import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { newFolder } from '../support/new-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const { version, bin } = JSON.parse(read('package.json')) as { version: string; bin: Record<string, string> };

interface Job {
  readonly needs?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly { readonly run?: string; readonly uses?: string }[];
}

/** A preload that makes this Node look older. */
const OLD_NODE =
  "data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'18.20.8'}})";

it.each(Object.values(bin))('%s says on an older Node which one it needs, before it loads anything', (path) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', OLD_NODE, path, 'spec'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect([status, stdout, stderr]).toEqual([2, '', 'dfinery-elt needs Node 20.19 or later, this is 18.20.8.\n']);
});

describe('a release', () => {
  const workflow = parse(read('.github/workflows/release.yml')) as {
    permissions: Readonly<Record<string, string>>;
    jobs: Readonly<Record<string, Job>>;
  };
  const { test, ...publishing } = workflow.jobs;

  it('has one version, wherever it is written', () => {
    expect(read('CHANGELOG.md')).toContain(`\n## ${version}\n`);
    expect(read('Dockerfile')).toContain(`org.opencontainers.image.version="${version}"`);
    expect(read('examples/scheduling/cronjob.yaml')).toContain(`image: dfinery-elt:${version}\n`);
    for (const connector of ['source-dfinery', 'destination-dfinery']) {
      expect(read(`connectors/${connector}/metadata.yaml`)).toContain(`dockerImageTag: ${version}\n`);
      expect(read(`connectors/${connector}/Dockerfile`)).toContain(`io.airbyte.version="${version}"`);
    }
  });

  it('is tested before anything is published, with provenance and without a stored token', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' });
    expect(test?.steps.some(({ run }) => run === 'bash .ci/run')).toBe(true);
    for (const job of Object.values(publishing)) {
      expect(job).toMatchObject({ needs: 'test', permissions: { 'id-token': 'write' } });
    }
    const words = Object.values(publishing).flatMap(({ steps }) => steps.map(({ run, uses }) => run ?? uses ?? ''));
    const published = words.filter((one) => one.includes('npm publish') && one.includes('--provenance'));
    // Without ./ npm would take the tarball for a repository of the user `packed` on GitHub.
    expect(published.map((one) => /npm publish (\S+)/.exec(one)?.[1])).toEqual(['./packed/dfinery-elt-*.tgz']);
    expect(words.some((one) => one.startsWith('actions/attest-build-provenance@'))).toBe(true);
    expect(JSON.stringify(workflow)).not.toContain('NPM_TOKEN');
  });

  it.skipIf(process.platform === 'win32')('refuses a tag while a page says that nothing is published', () => {
    const step = test?.steps.find(({ run }) => run?.includes('GITHUB_REF_NAME'))?.run ?? 'exit 9';
    const folder = newFolder();
    for (const name of ['README.md', 'CHANGELOG.md', 'package.json', 'docs', 'connectors'])
      cpSync(join(ROOT, name), join(folder, name), { recursive: true });
    const tag = (name: string) =>
      spawnSync('bash', ['-e', '-c', step], { cwd: folder, env: { ...process.env, GITHUB_REF_NAME: name } }).status;
    for (const name of ['README.md', 'CHANGELOG.md', 'docs/library.md']) {
      const path = join(folder, name);
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll('not published yet', 'published'));
    }
    expect([tag(`v${version}`), tag('v99.0.0')]).toEqual([0, 1]);
    writeFileSync(join(folder, 'docs/new.md'), 'It is not published yet.');
    expect(tag(`v${version}`)).toBe(1);
  });

  it.each(['release', 'ci'])('%s pins every action by its commit, and gives every job a deadline', (name) => {
    const text = read(`.github/workflows/${name}.yml`);
    const actions = [...text.matchAll(/uses: (\S+)/g)].map(([, action]) => action);
    expect(actions.filter((action) => !/@[0-9a-f]{40}$/.test(action))).toEqual([]);
    const { jobs } = parse(text) as { jobs: Readonly<Record<string, { 'timeout-minutes'?: number }>> };
    for (const job of Object.values(jobs)) expect(job['timeout-minutes']).toBeGreaterThan(0);
  });

  it('publishes in jobs that install nothing', () => {
    expect(JSON.stringify(publishing)).not.toMatch(/npm (ci|install)/);
  });
});
