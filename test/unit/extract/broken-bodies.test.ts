import fs, { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { configError, transientError } from '../../../src/base/errors.ts';
import { columnEdits } from '../../../src/cells/columns/column-edits.ts';
import { UnreadableBody } from '../../../src/index.ts';
import type { BodyFault } from '../../../src/service/http/body.ts';
import { type FakeServiceSettings, type Fault, Fixture, steadyRows } from '../../support/extract/extraction.ts';
import { failureOf } from '../../support/failure.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

const ROWS = steadyRows('2026-03-01', '2026-03-11', 6);
const DAYS = { startDate: '2026-03-05', endDate: '2026-03-07', toDateInclusive: 'true' } as const;
let fixture: Fixture;
const open = (settings: Partial<FakeServiceSettings> = {}) => {
  fixture = new Fixture('2026-03-10T16:00:00Z', { rows: ROWS, ...settings });
  fixture.options = { maxConcurrentExports: 1 };
  return fixture;
};
afterEach(() => fixture.close());

const files = () =>
  readdirSync(fixture.spoolDir, { recursive: true })
    .map(String)
    .filter((name) => /\.(part|csv|json)$/.test(name));
const body = (fault: BodyFault) => new UnreadableBody(fault, 'the connection broke');
const on = (count: number | readonly number[], fault: Fault): FakeServiceSettings['fault'] => {
  const counts = [count].flat();
  return (_q, n) => (counts.includes(n) ? fault : undefined);
};
const causes = () => fixture.events('window.retry').map(({ fields }) => fields?.cause);

describe('a truncated body', () => {
  it.each(['reset', 'length'] as const)(
    'is requested again, not stored, and its connection closed: %s',
    async (cause) => {
      await open({ fault: on(1, { breaks: body(cause) }) }).run(DAYS);
      expect(causes()).toEqual([cause]);
      expect(fixture.target.ids()).toHaveLength(18);
      expect(fixture.target.receipts.map(({ exports }) => exports)).toEqual([2, 1, 1]);
      expect([fixture.service.busy, readdirSync(fixture.spoolDir)]).toEqual([0, []]);
    },
  );

  it('leaves no file while the run continues', async () => {
    const windows = open({ fault: on(1, { breaks: body('reset') }) }).windows(DAYS);
    await windows.next();
    expect(files().filter((name) => name.endsWith('.part'))).toEqual([]);
    expect(files()).toHaveLength(2);
    await windows.return();
  });

  it('that stalls repeatedly is requested in fewer days; one that is reset never is', async () => {
    const long = { ...DAYS, windowDays: 3 };
    const silent: FakeServiceSettings['fault'] = ({ from, to }) =>
      from === to ? undefined : { breaks: body('stall') };
    await open({ fault: silent }).run(long);
    expect(fixture.service.ranges.map((range) => range.replaceAll('2026-03-', ''))).toEqual([
      ...['05..07', '05..07', '05..07'],
      ...['05..06', '05..06', '05..06'],
      ...['05..05', '06..06', '07..07'],
    ]);
    expect(fixture.events('window.split').map(({ fields }) => fields)).toEqual([
      { window: '2026-03-05..2026-03-07', attempt: 3, cause: 'stall' },
      { window: '2026-03-05..2026-03-06', attempt: 3, cause: 'stall' },
    ]);
    fixture.close();
    open({ fault: ({ from, to }) => (from === to ? undefined : { breaks: body('reset') }) });
    const failure = await failureOf(fixture.run(long));
    expect([failure.exitCode, failure.internal, fixture.service.sent]).toEqual([3, 'reset', 5]);
    expect(failure.where).toEqual({ window: '2026-03-05..2026-03-07', attempt: 5 });
  });

  it.each([
    ['of the disk', transientError('the disk is full', { where: { file: '/spool' }, internal: 'stall: x' })],
    ['of the user', configError('wrong')],
    ['of ours', new TypeError('a defect')],
  ])('that ends by an error %s is not requested again', async (_whose, breaks) => {
    open({ fault: on(1, { breaks }) });
    await expect(fixture.run(DAYS)).rejects.toBe(breaks);
    expect([fixture.service.sent, fixture.service.busy]).toEqual([1, 0]);
  });

  it('that ends by a stop rejects with its reason, without a warning', async () => {
    open();
    fixture.service.settings = {
      ...fixture.service.settings,
      fault: () => {
        fixture.controller.abort(new Error('stop'));
        return { breaks: body('reset') };
      },
    };
    await expect(fixture.run(DAYS)).rejects.toThrow('stop');
    expect([fixture.events('window.retry'), fixture.service.busy]).toEqual([[], 0]);
  });

  it('is not read further once the run is stopped', async () => {
    open();
    const all = (csv: string) => {
      fixture.controller.abort(new Error('stop'));
      return csv + csv.slice(csv.indexOf('\n') + 1).repeat(5_000);
    };
    fixture.service.settings = { ...fixture.service.settings, fault: () => ({ body: all }) };
    await expect(fixture.run(DAYS)).rejects.toThrow('stop');
    expect(fixture.counts.bytes).toBe(0);
    expect(fixture.service.sent).toBe(1);
  });
});

describe('a body with its header once more', () => {
  const header = (csv: string) => csv.slice(0, csv.indexOf('\n') + 1);

  it.each([
    ['at once', (csv: string) => header(csv) + csv],
    ['before the same rows', (csv: string) => csv + csv],
    ['at the end', (csv: string) => csv + header(csv)],
    ['in lines that end in CRLF', (csv: string) => (csv + csv).replaceAll('\n', '\r\n')],
    ['of two bodies that each begin with a byte order mark', (csv: string) => `\uFEFF${csv}`.repeat(2)],
    ['with a byte order mark at the end', (csv: string) => `${csv}\uFEFF${header(csv)}`],
  ])('is requested again, and nothing of it is stored: %s', async (_where, twice) => {
    await open({ fault: on(1, { body: twice }) }).run(DAYS);
    expect(causes()).toEqual(['header_again']);
    expect(fixture.target.ids()).toHaveLength(18);
    expect(fixture.target.receipts.map(({ exports }) => exports)).toEqual([2, 1, 1]);
  });

  it('each time is a failure that names the row', async () => {
    const failure = await failureOf(open({ fault: () => ({ body: (csv) => csv + csv }) }).run(DAYS));
    expect([failure.exitCode, fixture.target.ids()]).toEqual([3, []]);
    expect(failure.message).toMatch(
      /row 8 \(byte \d+\) of the body is broken: expected an event, found the header once more/,
    );
  });

  it('is none where a cell alone is the name of its column', async () => {
    const rename = (csv: string) => csv.replace(/df_login(?!,)/, 'df_event_name');
    await open({ fault: on(1, { body: rename }) }).run(DAYS);
    expect([causes(), fixture.target.ids().length]).toEqual([[], 18]);
  });
});

describe('a body larger than what is buffered', () => {
  it('is stored completely by a disk that is slower than the network', async () => {
    const probe = await fs.promises.open(import.meta.filename, 'r');
    const handle = Object.getPrototypeOf(probe) as object;
    await probe.close();
    const slow = async (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return real(...all);
    };
    const row = (i: number) => `1,2026-03-04 10:00:00.000,row-${i},row-${i},2026-03-04 10:00:00.000,u-${i},df_login\n`;
    const large = (csv: string) => csv + Array.from({ length: 30_000 }, (_, i) => row(i)).join('');
    open({ rows: [], fault: () => ({ body: large }) });
    const windows = fixture.windows({ ...DAYS, endDate: '2026-03-05' });
    const { value } = await withCall(handle, 'write', slow, () => windows.next());
    const text = readFileSync(value?.files[0].path ?? '', 'utf8');
    expect(text.length).toBeGreaterThan(2 << 20);
    expect(text.slice(text.indexOf('\n') + 1)).toBe(large(''));
    await windows.return(undefined);
  });
});

describe('a body that would fill the disk', () => {
  const disk = (freeShare: number, size: number) => async () => ({
    bsize: 4_096,
    blocks: size / 4_096,
    bavail: (size * freeShare) / 4_096,
  });

  it.each([
    ['a twentieth of a large disk is left free', 0.049, 1e12],
    ['256 MB of a small disk are left free', 0.4, 6e8],
  ])('is aborted and removed: %s', async (_title, share, size) => {
    open();
    const failure = await withCall(fs.promises, 'statfs', disk(share, size), () => failureOf(fixture.run(DAYS)));
    expect(failure).toMatchObject({ exitCode: 3, where: { file: expect.stringContaining(fixture.spoolDir) } });
    expect(failure.message).toContain('are kept free');
    expect([fixture.service.sent, fixture.service.busy, readdirSync(fixture.spoolDir)]).toEqual([1, 0, []]);
  });

  it('is aborted while it arrives, at whatever size the disk fills', async () => {
    open();
    let looks = 0;
    const filling = async () => ({ bsize: 1, blocks: 1e10, bavail: looks++ === 0 ? 9e9 : 1e8 });
    const endless = (csv: string) => csv + csv.slice(csv.indexOf('\n') + 1).repeat(20_000);
    fixture.service.settings = { ...fixture.service.settings, fault: () => ({ body: endless }) };
    const failure = await withCall(fs.promises, 'statfs', filling, () => failureOf(fixture.run(DAYS)));
    expect([failure.exitCode, looks]).toEqual([3, 2]);
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });
});

describe('a body that cannot be written to disk', () => {
  it('is closed, and the folder is named', async () => {
    open();
    const full = async (real: (...all: unknown[]) => unknown, path: unknown, ...rest: unknown[]) => {
      if (String(path).endsWith('.part')) throw systemError('ENOSPC');
      return real(path, ...rest);
    };
    const failure = await withCall(fs.promises, 'open', full, () => failureOf(fixture.run(DAYS)));
    expect(failure).toMatchObject({ exitCode: 3, where: { file: expect.stringContaining(fixture.spoolDir) } });
    expect([fixture.service.sent, fixture.service.busy]).toEqual([1, 0]);
  });
});

describe('empty_body no_rows', () => {
  it('retries a truncated body', async () => {
    open({ fault: on(1, { body: (csv) => csv.slice(0, -15) }) });
    fixture.options = { maxConcurrentExports: 1, emptyBody: 'no_rows' };
    await fixture.run(DAYS);
    expect(fixture.target.ids()).toHaveLength(18);
    expect(causes()).toEqual(['cut_in_row']);
  });

  it('takes an empty body as a day without rows, for one export', async () => {
    open({ fault: on(2, { body: () => '' }) });
    fixture.options = { maxConcurrentExports: 1, emptyBody: 'no_rows' };
    const windows = [];
    for await (const window of fixture.windows(DAYS)) {
      await fixture.target.commit(window);
      windows.push(window);
    }
    expect(windows[1]).toMatchObject({ files: [], receipt: { exports: 1, rows: 0, invalid_utf8: 0, suppressed: 0 } });
    expect(fixture.counts).toMatchObject({ exports: 3 });
  });
});

describe('the body that is kept for inspection', () => {
  const short = (csv: string) => csv.replace(/,df_login\n/, '\n');
  const shortLater = (csv: string) => csv.replace(/,df_login\n$/, '\n');

  it('is the third with the same defect, not one with another defect between them', async () => {
    const faults = [short, short, shortLater, (csv: string) => `${short(csv)}1,the fourth\n`];
    open({ fault: (_q, n) => (faults[n - 1] ? { body: faults[n - 1] } : undefined) });
    const failure = await failureOf(fixture.run(DAYS));
    expect([failure.exitCode, fixture.service.sent]).toEqual([3, 4]);
    expect(readFileSync(failure.where.file ?? '', 'utf8')).toContain('the fourth');
    expect(failure.where.window).toBe('2026-03-05');
    expect(failure.message).toContain(failure.where.file);
    expect(files()).toEqual([expect.stringContaining('malformed-')]);
  });

  it('does not exist when the third is complete', async () => {
    const windows = open({ fault: on([1, 2], { body: short }) }).windows(DAYS);
    await windows.next();
    expect(files()).toHaveLength(2);
    await windows.return();
  });

  it('does not exist when columns are dropped or hashed, which the message says', async () => {
    open({ fault: () => ({ body: short }) });
    fixture.options = { maxConcurrentExports: 1, edits: columnEdits(['df_api_version'], [], undefined) };
    const failure = await failureOf(fixture.run(DAYS));
    expect(failure.where).toEqual({ window: '2026-03-05' });
    expect(failure.message).toMatch(/broken in the same way 3 times: .* No body is kept for inspection/);
    expect(readdirSync(fixture.spoolDir)).toEqual([]);
  });
});

describe('the log of a run', () => {
  it('counts its own exports alone', async () => {
    await open().run(DAYS);
    expect(fixture.counts.exports).toBe(3);
    await fixture.run(DAYS);
    expect(fixture.counts.exports).toBe(1);
  });

  it('names the days, the attempt, the reason and the next attempt of a failure', async () => {
    await open({ fault: on(1, { refuse: 'retry' }) }).run(DAYS);
    expect(fixture.events('window.retry')).toMatchObject([
      { level: 'warn', fields: { window: '2026-03-05', attempt: 1, cause: 'retry', pause_ms: 500 } },
    ]);
  });

  it('names the days and the code of a final refusal', async () => {
    open({ fault: on(2, { refuse: 'config' }) });
    const failure = await failureOf(fixture.run(DAYS));
    expect(failure).toMatchObject({ exitCode: 2, internal: 'config', where: { window: '2026-03-06', attempt: 1 } });
    expect(fixture.service.sent).toBe(2);
  });

  it('names each wait for the quota, and the run ends after fifty waits', async () => {
    open({ fault: (q) => (q.from === '2026-03-06' ? { refuse: 'wait' } : undefined) });
    const failure = await failureOf(fixture.run(DAYS));
    expect([failure.exitCode, fixture.service.sent]).toEqual([3, 51]);
    expect(failure.message).toMatch(/^2026-03-06: .* Asked 50 times/);
    const waits = fixture.events('window.wait').map(({ fields }) => fields);
    expect(waits).toHaveLength(49);
    expect(waits[0]).toEqual({ window: '2026-03-06', wait: 1 });
  });
});
