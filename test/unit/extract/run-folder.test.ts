import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RunFolder, sweepRunFolders } from '../../../src/extract/spool/run-folder.ts';
import { Spool } from '../../../src/extract/spool/spool.ts';
import { foreignSpoolFolders, spoolFolders } from '../../../src/extract/spool/spool-folders.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';
import { ManualClock } from '../../support/service/service.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

const NOW = 1_700_000_000_000;
const RUN = 'r0123456789abcdef';
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dfinery-root-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A folder as a run leaves it, last changed so many seconds before now. */
function leave(name: string, lease: string | undefined, seconds = 3_600, mode = 0o700): string {
  const path = join(root, name);
  mkdirSync(path, { mode });
  chmodSync(path, mode);
  mkdirSync(join(path, 'below'));
  writeFileSync(join(path, 'below', 'rows'), 'a person');
  if (lease !== undefined) writeFileSync(join(path, `${RUN}.lease`), lease);
  utimesSync(path, NOW / 1_000 - seconds, NOW / 1_000 - seconds);
  return path;
}

describe('the folder of a run', () => {
  it('is created with its parent, private to its user, and removed as a whole', async () => {
    const clock = new ManualClock(NOW);
    const below = join(root, 'not', 'there');
    for (const what of ['arrow', 'files'] as const) {
      const folder = await RunFolder.open(below, clock, what);
      expect(basename(folder.path)).toMatch(new RegExp(`^dfinery-${what}-[0-9A-Za-z]{6}$`));
      expect([below, folder.path].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700]);
      expect(readdirSync(folder.path)).toEqual([expect.stringMatching(/^r[0-9a-f]{16}\.lease$/)]);
      mkdirSync(join(folder.path, 'deep'));
      writeFileSync(join(folder.path, 'deep', 'rows'), '');
      const other = await RunFolder.open(below, clock, what);
      expect(existsSync(folder.path)).toBe(true);
      await folder.remove();
      await folder.remove();
      await other.remove();
      expect([readdirSync(below), clock.pending]).toEqual([[], 0]);
    }
  });

  it('fails with its path if it cannot be created', async () => {
    writeFileSync(join(root, 'file'), '');
    const opening = RunFolder.open(join(root, 'file'), new ManualClock(NOW), 'arrow');
    await expect(opening).rejects.toMatchObject({ kind: 'config', where: { file: join(root, 'file') } });
  });

  it('is removed by the next run if its process is dead, and not if it may be alive', async () => {
    const gone = [
      leave('dfinery-arrow-000001', ownerText({ pid: DEAD_PID })),
      leave('dfinery-files-000002', undefined, 61),
      leave('dfinery-files-00000z', undefined, 60),
      leave('dfinery-files-00000y', undefined, -60),
    ];
    const kept = [
      leave('dfinery-arrow-00000a', ownerText()),
      leave('dfinery-arrow-00000b', undefined, 59),
      leave('dfinery-arrow-00000c', undefined, 3_600, 0o755),
      leave('dfinery-arrow-00000d0', undefined),
      leave('dfinery-other-00000e', undefined),
      leave('my-dfinery-arrow-00000f', undefined),
    ];
    const both = leave('dfinery-arrow-000003', ownerText({ pid: DEAD_PID }));
    writeFileSync(join(both, 'rfedcba9876543210.lease'), ownerText());
    utimesSync(both, 1, 1);
    symlinkSync(kept[0], join(root, 'dfinery-files-00link'));
    expect(await sweepRunFolders(root, NOW)).toEqual([]);
    expect(gone.filter(existsSync)).toEqual([]);
    expect([...kept, both, join(root, 'dfinery-files-00link')].every(existsSync)).toBe(true);
    expect(readdirSync(kept[0])).toContain('below');
    await expect(sweepRunFolders(join(root, 'none'), NOW)).resolves.toEqual([]);
  });
});

describe('the folder of a live run', () => {
  it('stays, and is named, where it cannot be listed or looked at', async () => {
    const live = leave('dfinery-files-000001', ownerText());
    for (const call of ['readdir', 'lstat']) {
      const failing = (real: (...all: unknown[]) => unknown, path: unknown, ...more: unknown[]) =>
        path === live ? Promise.reject(systemError('EIO')) : real(path, ...more);
      const left = await withCall(fs.promises, call, failing, () => sweepRunFolders(root, NOW));
      expect([left, existsSync(live)], call).toEqual([[live], true]);
    }
  });
});

describe('a run that opens its spool, or a temporary folder', () => {
  it.each(['spool', 'folder'])(
    'removes leftovers of dead runs beside it before the first request: %s',
    async (what) => {
      const clock = new ManualClock(NOW);
      const dead = leave('dfinery-arrow-000001', ownerText({ pid: DEAD_PID }));
      if (what === 'spool') await (await Spool.open(root, 'q', 'print', clock)).close();
      else await (await RunFolder.open(root, clock, 'files')).remove();
      expect(existsSync(dead)).toBe(false);
      expect([readdirSync(root), clock.pending]).toEqual([[], 0]);
    },
  );
});

describe('the spool folders under a directory', () => {
  it('are recognised by name, owner and mode; others are listed as such', async () => {
    const names = ['dfinery-elt-0000000000000002', 'dfinery-elt-0000000000000001'];
    const ours = names.map((name) => leave(name, undefined));
    const open = ['dfinery-elt-000000000000000b', 'dfinery-elt-000000000000000a'];
    const theirs = open.map((name) => leave(name, undefined, 0, 0o750));
    for (const name of ['dfinery-elt-quota-0', 'xdfinery-elt-0000000000000001', 'dfinery-elt-00000000000000011'])
      leave(name, undefined, 0, 0o755);
    symlinkSync(ours[0], join(root, 'dfinery-elt-000000000000000c'));
    expect((await spoolFolders(root)).sort()).toEqual([...ours].sort());
    expect(await foreignSpoolFolders(root)).toEqual([...theirs.sort(), join(root, 'dfinery-elt-000000000000000c')]);
    expect([await spoolFolders(join(root, 'none')), await foreignSpoolFolders(join(root, 'none'))]).toEqual([[], []]);
  });
});
