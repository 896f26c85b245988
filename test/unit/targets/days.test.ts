import { chmodSync, chownSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { filesBelow, Place, TARGET_NAMES } from '../../support/targets/place.ts';

const [D1, D2, D3] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe.each(TARGET_NAMES)('%s', (name) => {
  let place: Place;
  beforeEach(() => {
    place = new Place(name);
  });

  const agrees = async () => expect((await place.verify()).differences).toEqual([]);

  it('stores days in any order, and moves the cursor over an unbroken row of days', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }])], [place.of(D3, [{ id: 'c' }])]]);
    expect((await place.state())?.events.exportState?.from_date).toBe(D2);
    await place.load([[place.of(D2, [{ id: 'b' }])]]);
    expect((await place.state())?.events.exportState?.from_date).toBe('2026-01-04');
    expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`, `${D3} c`]);
    await agrees();
  });

  it('replaces a day that is read again, and only that day', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }, { id: 'b' }]), place.of(D2, [{ id: 'c' }])]]);
    const [commit] = await place.load([[place.of(D1, [{ id: 'b', x: '5' }, { id: 'd' }])]]);
    expect(commit).toMatchObject({ daysWritten: [D1], rowsWritten: 2 });
    expect(await place.keys()).toEqual([`${D1} b`, `${D1} d`, `${D2} c`]);
    await agrees();
  });

  it('has in each row when its own day was requested, also of days that come together', async () => {
    const days = [place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'b' }])];
    await place.load([days]);
    const times = await place.read('SELECT epoch_ms(_loaded_at)::VARCHAR AS t FROM events ORDER BY _key');
    expect(times).toEqual(days.map(({ receipt }) => ({ t: `${Date.parse(receipt.requested_at)}` })));
  });

  it('numbers keys over the parts of a day that was too large', async () => {
    const parts = [{ x: '1' }, { y: 'z' }, { x: '2' }].map((cells) => place.of(D1, [{ id: 'a', ...cells }]));
    const files = parts.flatMap((part) => part.files);
    await place.load([[{ ...parts[1], files, receipt: { ...parts[1].receipt, rows: 3 } }]]);
    expect(await place.read('SELECT _key, x::INTEGER AS x, y FROM events ORDER BY 1')).toEqual([
      { _key: 'a', x: 1, y: null },
      { _key: 'a#2', x: null, y: 'z' },
      { _key: 'a#3', x: 2, y: null },
    ]);
  });

  it('gives each row its own key if the export has a column RowID', async () => {
    const rows = [
      { id: 'a', RowID: 'x' },
      { id: 'a', RowID: 'y' },
      { id: 'b', RowID: 'y' },
    ];
    await place.load([[place.of(D1, rows)]]);
    expect(await place.read('SELECT _key, "RowID_2" AS cell FROM events ORDER BY 1')).toEqual([
      { _key: 'a', cell: 'x' },
      { _key: 'a#2', cell: 'y' },
      { _key: 'b', cell: 'y' },
    ]);
  });

  it('distinguishes rows without an id that share an event over two neighbouring days', async () => {
    const [a, b] = [{ note: 'a' }, { note: 'b' }];
    const times = { df_server_datetime: `${D2} 00:00:00.000`, df_correction_datetime: `${D2} 00:00:00.000` };
    const rows = [a, b].map((row) => ({ ...row, ...times }));
    await place.load([[place.shared(D1, rows)], [place.shared(D2, rows.slice(1))]]);
    expect((await place.keys()).map((key) => key.slice(0, 10))).toEqual([D1, D2]);
    expect(await place.verify()).toEqual({ differences: [], warnings: [] });
  });

  it('warns in verify of an id under two days, and of one that reads as the key of a repeated id', async () => {
    const rows = [{ id: 'a' }, { id: 'a' }, { id: 'a#2' }, { id: 'b' }];
    await place.load([[place.of(D1, rows), place.of(D2, [{ id: 'b' }])]]);
    const warnings = ['2 keys occur more than once in events.'];
    expect(await place.verify()).toEqual({ differences: [], warnings });
  });

  it('keeps a row that two neighbouring exports share once, under the later day', async () => {
    const [a, b, c] = [{ id: 'a' }, { id: 'b' }, { id: 'c' }];
    await place.load([[place.shared(D1, [a, b])], [place.shared(D2, [b, c])]]);
    expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`, `${D2} c`]);
    await agrees();
    await place.load([[place.shared(D1, [a, b])]]);
    expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`, `${D2} c`]);
    expect((await place.state())?.events.receipts.get(D1)).toMatchObject({ rows: 2, rows_stored: 1 });
    await agrees();
  });

  it('takes no days of another service, though both began in a new place', async () => {
    const [first, second] = [await place.open(), await place.open()];
    const commitInfo = place.commitInfo(D1);
    await first.commit([place.of(D1, [{ id: 'a' }])], commitInfo);
    const fingerprints = { ...commitInfo.fingerprints, serviceHash: '1'.repeat(64) };
    const refused = second.commit([place.of(D1, [{ id: 'b' }])], { ...commitInfo, fingerprints });
    await expect(refused).rejects.toThrow('The stored data belong to another service');
    for (const sink of [first, second]) await sink.close();
    expect(await place.keys()).toEqual([`${D1} a`]);
    await agrees();
  });

  it('stores nothing of a file that is read as other rows than were checked', async () => {
    const day = place.of(D1, [{ id: 'a' }]);
    const misread = { ...day, files: day.files.map((file) => ({ ...file, keptRows: 2 })) };
    await expect(place.load([[misread]])).rejects.toThrow(`2 rows of ${D1} came to 1: nothing was kept`);
    expect(await place.state()).toBeUndefined();
  });

  it('stores a day without rows, and a day that became empty', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }]), place.of(D2, [])]]);
    await place.load([[place.of(D1, [])]]);
    expect((await place.state())?.events.exportState?.from_date).toBe(D3);
    await agrees();
  });

  it('prunes whole days after a plan, and keeps the cursor', async () => {
    await place.load([[place.of(D1, [{ id: 'a' }]), place.of(D2, [{ id: 'b' }])]]);
    expect(await place.prune(D2, false)).toEqual({ days: [D1], rows: 1 });
    expect((await place.keys()).length).toBe(2);
    expect(await place.prune(D2, true)).toEqual({ days: [D1], rows: 1 });
    expect(await place.keys()).toEqual([`${D2} b`]);
    const state = await place.state();
    expect([state?.events.receipts.get(D1)?.pruned, state?.events.exportState?.from_date]).toEqual([true, D3]);
    // No run takes them for rows that somebody else removed.
    await place.load([]);
    expect(place.log.filter(({ level }) => level === 'warn')).toEqual([]);
    const { differences, warnings } = await place.verify();
    expect([differences, warnings]).toEqual([[], [expect.stringContaining(D1)]]);
  });

  it('counts a day whose rows a user removed as pruned; everything else works', async () => {
    await place.load([
      [
        place.of(D1, [{ id: 'a', member: 'm1', df_unified_id: 'u1' }]),
        place.of(D2, [{ id: 'b', member: 'm2', df_unified_id: 'u2' }]),
      ],
    ]);
    if (name === 'duckdb') await place.read(`DELETE FROM events WHERE event_date = '${D1}'`);
    else rmSync(join(place.place, `events/event_date=${D1}`), { recursive: true });
    expect((await place.state())?.events.receipts.get(D1)).toMatchObject({ pruned: true });
    expect((await place.verify()).differences).toEqual([]);
    await place.load([[place.of(D3, [{ id: 'c', member: 'm3', df_unified_id: 'u3' }])]]);
    const removed = { level: 'warn', message: expect.stringContaining(`--from ${D1}`) };
    expect(place.log.filter(({ event }) => event === 'days.removed')).toMatchObject([removed]);
    await place.purge(['m3']);
    expect(await place.keys()).toEqual([`${D2} b`]);
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`]);
    await agrees();
  });

  it('keeps its last run, also after profiles alone, but not a first run that stored nothing', async () => {
    const run = { began: '2026-02-01T00:00:00.000Z', ended: '2026-02-01T00:01:00.000Z', exitCode: 3, cause: 'why' };
    const lastRun = { ...run, version: '1', rows: 0, days: 0, exports: 1, bytes: 5 };
    const recordRun = async (rows: number) => {
      const sink = await place.open({ loadsProfiles: true });
      await sink.recordRun({ ...lastRun, rows });
      await sink.close();
      return place.state();
    };
    expect([await recordRun(0), filesBelow(place.place)]).toEqual([undefined, []]);
    await place.loadProfiles(place.snapshot('df_unified_id\nu1\n'));
    expect(await recordRun(1)).toMatchObject({ lastRun: { ...lastRun, rows: 1 } });
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    expect(await recordRun(2)).toMatchObject({ lastRun: { ...lastRun, rows: 2 } });
  });

  it('lets those read who may read its folder, and nobody look into the folder of runs', async () => {
    if (name === 'duckdb') {
      await place.load([[place.of(D1, [{ id: 'a', member: 'm1', df_unified_id: 'u1' }])]]);
      expect(modeOf(place.place)).toBe('600');
      chmodSync(place.place, 0o640);
      await place.purge(['m1']);
      expect(modeOf(place.place)).toBe('640');
      return;
    }
    mkdirSync(place.place, { mode: 0o750 });
    await place.load([[place.of(D1, [{ id: 'a' }])]]);
    await place.load([[place.of(D2, [{ id: 'b', more: '1' }])]]);
    const events = join(place.place, 'events');
    const folders = ['', ...readdirSync(events)].map((folder) => join(events, folder));
    expect(new Set(folders.map(modeOf))).toEqual(new Set(['750']));
    expect(new Set(place.files().map(modeOf))).toEqual(new Set(['640']));
    expect(modeOf(join(place.place, '_dfinery'))).toBe('700');
  });

  it.runIf(process.getuid?.() === 0).each([1234, 0])(
    'made or purged by root belongs to owner %i and the group of its folder',
    async (uid) => {
      const folder = dirname(place.place);
      chownSync(folder, uid, 1235);
      await place.load([[place.of(D1, [{ id: 'a', member: 'm1', df_unified_id: 'u1' }, { id: 'b' }])]]);
      await place.purge(['m1']);
      const made = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path));
      expect(made.filter((path) => statSync(path).uid !== uid || statSync(path).gid !== 1235)).toEqual([]);
    },
  );
});
