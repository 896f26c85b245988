import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import type { Ledger } from '../../../src/erasure/ledger/ledger.ts';
import type { LedgerContent } from '../../../src/erasure/ledger/line.ts';
import { Purge } from '../../../src/erasure/purge.ts';
import { Folders, quickClock } from '../../support/deletion/deletions.ts';
import { purgeBy } from '../../support/deletion/plans.ts';

let folders: Folders;

beforeEach(() => {
  folders = new Folders();
});
afterEach(() => folders.close());

it('purges the other places after a defect in one, of whose text neither report nor ledger has anything', async () => {
  const events: LogEvent[] = [];
  const logger = createLogger(
    (event) => events.push(event),
    'info',
    (text) => text,
  );
  const io = { clock: quickClock(), logger, signal: new AbortController().signal };
  const removing = async (place: string) => {
    if (place === '/first') throw new TypeError('no cell of member-1');
  };
  const request = purgeBy(removing, io, folders.root, ['/first', '/second']);
  const purge = await Purge.open(request, [{ id: 'member-1', row: 1 }], { baseUrl: 'http://h', serviceId: 's' });
  const lines: LedgerContent[] = [];
  const ledger = { write: async (line: LedgerContent) => void lines.push(line) } as Pick<Ledger, 'write'> as Ledger;

  const failures = await purge.run(['member-1'], ledger, new Map());

  expect(failures).toMatchObject([{ kind: 'system', message: expect.stringContaining('duckdb /first') }]);
  expect(purge.reports.map(({ place, rows_removed }) => [place, rows_removed])).toEqual([
    ['/first', null],
    ['/second', 1],
  ]);
  const outcomes = lines.flatMap((line) => (line.kind === 'purge' ? [[line.target, line.outcome]] : []));
  expect(outcomes).toEqual([
    ['duckdb /first', 'open'],
    ['duckdb /second', 'done'],
  ]);
  expect(JSON.stringify([lines, purge.reports])).not.toContain('no cell');
  expect(events.map(({ message }) => message).join()).toContain('TypeError: no cell of member-1');
});

it('names a spool directory that cannot be read before anybody is deleted', async () => {
  const unreadable = join(folders.root, 'loop');
  symlinkSync(unreadable, unreadable);
  const logger = createLogger(
    () => {},
    'error',
    (text) => text,
  );
  const io = { clock: quickClock(), logger, signal: new AbortController().signal };
  const request = purgeBy(async () => {}, io, folders.root);
  const service = { baseUrl: 'http://h', serviceId: 's' };
  const purge = await Purge.open({ ...request, spoolDirs: [unreadable, join(folders.root, 'none')] }, [], service);
  await purge.trial();
  expect(purge.unreached).toEqual([expect.stringMatching(/out of reach.*: [^ ]*loop\.$/)]);
});
