import { beforeEach, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../../src/base/clock.ts';
import type { UserError } from '../../../src/base/errors.ts';
import type { Suppression } from '../../../src/cells/columns/export-scanner.ts';
import { scannerOptionsOf } from '../../../src/extract/export-settings.ts';
import { ObservedService } from '../../../src/extract/observed-service.ts';
import { planRun } from '../../../src/extract/which-days.ts';
import { Load } from '../../../src/targets/load.ts';
import { SETTINGS } from '../../support/extract/extraction.ts';
import { type Step, serve, whole } from '../../support/service/faulty-server.ts';
import { exportService } from '../../support/service/service.ts';
import { Place } from '../../support/targets/place.ts';

const NOW = Date.parse('2026-01-20T00:00:00Z');
const CSV = 'df_unified_id,df_external_id,plan\nu1,m1,gold\nu2,m2,\nu3,m3,basic\nu4,m4,basic\n';
const OK = whole(200, CSV);

describe('the snapshot of user profiles', () => {
  let place: Place;
  let now: number;
  let sent: number;
  beforeEach(() => {
    place = new Place('duckdb');
    now = NOW;
    sent = 0;
    place.clock = { now: () => now, sleep: async () => {}, after: () => () => {} };
  });

  /** Opens the place as a sync does; returns the failure with which it would end. */
  async function sync(answer: readonly Step[], settings = SETTINGS, suppression?: Suppression) {
    const { url, requests } = await serve(() => answer);
    const { clock, logger, spoolDir } = place.options();
    const runtime = { clock, logger, spoolDir, signal: place.signal, random: () => 0 };
    const { service } = exportService(url, { clock });
    const load = new Load({
      ...runtime,
      service: new ObservedService(service, settings, runtime),
      scannerOptions: scannerOptionsOf(settings, suppression),
    });
    const sink = await place.open({ loadsProfiles: true });
    try {
      const plan = { ...planRun({ settings: { ...settings, userProfiles: true }, now }), days: [] };
      const failure = await load.loadAll(plan, sink).then(
        () => undefined,
        (error: UserError) => error,
      );
      return { exit: failure?.exitCode ?? 0, message: failure?.message ?? '', stored: load.result.profileCount };
    } finally {
      sent += requests.length;
      await service.close();
      await sink.close();
    }
  }
  const rows = () => place.readProfiles('SELECT df_unified_id AS u, plan FROM user_profiles ORDER BY 1');

  it('is exported at most four times in three days with a sync every four hours', async () => {
    for (let hour = 0; hour < 72; hour += 4) {
      expect((await sync(OK)).exit).toBe(0);
      now += 4 * HOUR_MS;
    }
    expect(sent).toBe(4);
    expect(await rows()).toHaveLength(4);
  });

  it('is exported again at once with other columns that are dropped or hashed', async () => {
    await sync(OK);
    await sync(OK, { ...SETTINGS, columnsDrop: ['plan'] });
    expect(sent).toBe(2);
  });

  it('never replaces rows by none, and is warned about with fewer than half', async () => {
    await sync(OK);
    now += 20 * HOUR_MS;
    expect(await sync(whole(200, 'df_unified_id,plan\n'))).toMatchObject({
      exit: 3,
      message: expect.stringContaining('the place keeps its 4 profiles.'),
    });
    expect(await rows()).toHaveLength(4);
    expect(await sync(whole(200, 'df_unified_id,plan\nu1,gold\n'))).toMatchObject({ exit: 0, stored: 1 });
    expect(place.log.filter(({ event }) => event === 'profiles.fewer_rows')).toHaveLength(1);
    expect(await rows()).toEqual([{ u: 'u1', plan: 'gold' }]);
  });

  it('may have no row if the place holds none of the one before', async () => {
    await sync(OK, SETTINGS, { has: () => true });
    now += 20 * HOUR_MS;
    expect(await sync(whole(200, 'df_unified_id,plan\n'))).toMatchObject({ exit: 0, stored: 0 });
  });

  it.each<[string, readonly Step[], number]>([
    ['refused for a limit, each time', whole(429, ''), 3],
    ['empty, each time', whole(200, ''), 3],
    ['broken in the same way, each time', whole(200, `${CSV}u5,x\n`), 3],
    ['cut within a row, each time', whole(200, `${CSV}u5`), 3],
    ['failed, each time', whole(500, ''), 3],
    ['refused for its token', whole(401, ''), 2],
    ['unknown to the service', whole(404, ''), 2],
    ['not valid for the service', whole(400, ''), 2],
    ['without unified ids', whole(200, 'df_external_id\nm1\n'), 2],
  ])('that is %s leaves the stored one, and a sentence', async (_, answer, exit) => {
    await sync(OK);
    now += 20 * HOUR_MS;
    const result = await sync(answer);
    expect(result.message).toMatch(/The stored profiles stay/);
    expect(result.exit).toBe(exit);
    expect(await rows()).toHaveLength(4);
  });
});
