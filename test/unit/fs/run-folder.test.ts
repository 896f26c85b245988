import fs, { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { takeFolderWithoutModes } from '../../../src/fs/permissions.ts';
import { RunFolder, sweepRunFolders } from '../../../src/fs/run-folder.ts';
import { HAS_MODES } from '../../support/modes.ts';
import { newFolder } from '../../support/new-folder.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

let root: string;
beforeEach(() => {
  root = newFolder();
});

/** Makes the folder of a dead run. */
function deadRun(end: string, mode = 0o700): string {
  const folder = join(root, `dfinery-spool-${end}`);
  mkdirSync(folder);
  writeFileSync(join(folder, 'run.lock'), ownerText({ pid: DEAD_PID }));
  chmodSync(folder, mode);
  return folder;
}

/** Sweeps where the system says something else of files. */
const sweepWith = (change: Partial<fs.Stats> | ((stat: fs.Stats) => Partial<fs.Stats>)) => {
  const other = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
    const stat = real(...all) as fs.Stats;
    return Object.assign(stat, typeof change === 'function' ? change(stat) : change);
  };
  return withCall(fs, 'lstatSync', other, () => withCall(fs, 'statSync', other, () => sweepRunFolders(root)));
};

describe.runIf(HAS_MODES)('the sweep of dead runs', () => {
  it('removes their folders, and no file or link of such a name', async () => {
    deadRun('abcdef');
    mkdirSync(join(root, 'target'));
    writeFileSync(join(root, 'dfinery-spool-aafile'), '');
    symlinkSync('target', join(root, 'dfinery-spool-aalink'));
    expect(await sweepRunFolders(root)).toEqual({ liveFolders: [], stuckFolders: [], foreignFolders: [] });
    expect(readdirSync(root).sort()).toEqual(['dfinery-spool-aafile', 'dfinery-spool-aalink', 'target']);
  });

  it('comes before each run', async () => {
    deadRun('abcdef');
    await (await RunFolder.open(root, systemClock)).remove();
    expect(readdirSync(root)).toEqual([]);
  });

  it.each([0o701, 0o710, 0o704, 0o777])('leaves and names a folder that others may use by mode %o', async (mode) => {
    const folder = deadRun('abcdef', mode);
    expect(await sweepRunFolders(root)).toMatchObject({ foreignFolders: [folder] });
    expect(readdirSync(folder)).toEqual(['run.lock']);
  });

  it('leaves and names a folder of another user', async () => {
    const folder = deadRun('abcdef');
    expect(await sweepWith({ uid: 54_321 })).toMatchObject({ foreignFolders: [folder] });
    expect(readdirSync(folder)).toEqual(['run.lock']);
  });

  it('removes a folder whose mode is open because the file system keeps none', async () => {
    deadRun('abcdef', 0o755);
    expect(await sweepWith(({ mode }) => ({ mode: mode | 0o755 }))).toMatchObject({ foreignFolders: [] });
    expect(readdirSync(root)).toEqual([]);
    expect([takeFolderWithoutModes(), takeFolderWithoutModes()]).toEqual([root, undefined]);
  });
});

it('leaves no folder behind if the disk is full while it is made', async () => {
  const refuse = () => {
    throw systemError('ENOSPC');
  };
  const opening = withCall(fs, 'writeFileSync', refuse, () => RunFolder.open(root, systemClock));
  await expect(opening).rejects.toMatchObject({ exitCode: 3, message: expect.stringContaining('is full') });
  expect(readdirSync(root)).toEqual([]);
});
