import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { beforeAll, describe, expect, it } from 'vitest';
import { newFolder } from '../../support/new-folder.ts';

/** A container as far as processes are concerned: process ids of its own, the host name of its host. */
const CONTAINER = ['unshare', '-Urpf', '--mount-proc', '--kill-child'];
const HOST: readonly string[] = [];
const isPermitted = spawnSync(CONTAINER[0], [...CONTAINER.slice(1), 'true']).status === 0;

let folder = '';
let child = '';
beforeAll(async () => {
  folder = newFolder();
  child = join(folder, 'child.mjs');
  await build({
    entryPoints: [resolve(import.meta.dirname, '../../support/processes/container-child.ts')],
    outfile: child,
    bundle: true,
    platform: 'node',
    format: 'esm',
  });
});

const words = (place: readonly string[], ...more: string[]) => [...place, process.execPath, child, ...more];

async function hold(place: readonly string[], at: string) {
  const [command = '', ...rest] = words(place, 'hold', at);
  const holder = spawn(command, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(holder, 'exit');
  await once(holder.stdout, 'data');
  // A namespace that is gone leaves its number to the next one, in which the death could be seen after all.
  const kept = existsSync('/proc/self/ns/pid') ? openSync(`/proc/${holder.pid}/ns/pid_for_children`, 'r') : undefined;
  return {
    async kill() {
      holder.stdin.end();
      await ended;
    },
    forget() {
      if (kept !== undefined) closeSync(kept);
    },
  };
}

/** `taken`, or `free` if it could be had. */
function tryLock(place: readonly string[], at: string): string {
  const [command = '', ...rest] = words(place, 'try', at);
  const { stdout, stderr } = spawnSync(command, rest, { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout;
}

describe.skipIf(!isPermitted)('two containers with one host name and one folder', () => {
  it.each([
    ['the host', 'a container', HOST, CONTAINER],
    ['a container', 'the host', CONTAINER, HOST],
    ['a container', 'another container', CONTAINER, CONTAINER],
  ])('a lock held by %s is not stolen by %s', async (_one, _other, holding, trying) => {
    const at = mkdtempSync(join(folder, 'shared-'));
    const holder = await hold(holding, at);
    expect(tryLock(trying, at)).toBe('taken');
    await holder.kill();
    // Death cannot be seen across containers: what is held stays so until its heartbeat has been silent.
    const after = tryLock(trying, at);
    holder.forget();
    expect(after).toBe('taken');
  });
});

describe.runIf(process.platform === 'linux')('processes of one machine', () => {
  it('that want the lock of a dead owner at the same time get it one at a time', async () => {
    await (await hold(HOST, folder)).kill();
    const rivals = Array.from({ length: 6 }, () => {
      const [command = '', ...rest] = words(HOST, 'hold', folder);
      return spawn(command, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
    });
    const outcomes = await Promise.all(rivals.map(async ({ stdout }) => String((await once(stdout, 'data'))[0])));
    for (const { stdin } of rivals) stdin.end();
    expect(outcomes.sort()).toEqual(['free', ...Array(5).fill('taken')]);
  });
});
