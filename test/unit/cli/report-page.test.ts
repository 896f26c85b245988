import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { reportPage } from '../../../src/cli/report/page.ts';
import { newState } from '../../../src/table/state.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { exampleReport, HOSTILE } from '../../support/targets/report.ts';

const OPTIONS = {
  target: `duckdb ${HOSTILE}.duckdb`,
  now: Date.UTC(2026, 1, 10),
  historyDays: 30,
} as const;

/** The text of a page between two headings. */
const section = (page: string, title: string) => page.slice(page.indexOf(`<h2>${title}`)).split('</section>')[0];

describe('the page of a target', () => {
  it('is one file below 3 MB without scripts, requests or unescaped names', async () => {
    const page = await reportPage(exampleReport(), OPTIONS);
    expect(page.length).toBeLessThan(3_000_000);
    expect(page).not.toMatch(/<script|<link|<img|<iframe|<[^>]*\son\w+=|javascript:|@import|url\(/i);
    expect([...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address)).toEqual([]);
    expect(page).not.toContain(HOSTILE);
    expect(page).not.toContain('\u202e');
    expect(page).toContain('&lt;b onclick=&quot;x&quot;&gt;');
    expect(page).toContain('\\u202e');
  });

  it('shows the status of each day', async () => {
    const days = section(await reportPage(exampleReport(), OPTIONS), 'Days');
    const stateOf = (day: string) => new RegExp(`class="([a-z-]+)" title="${day}: ([^"]*)"`).exec(days)?.slice(1, 3);
    expect(stateOf('2026-01-15')).toEqual(['lost-soon', 'lost in 4 days']);
    expect(stateOf('2026-01-12')).toEqual(['gap', 'gap']);
    expect(stateOf('2026-01-20')).toEqual(['loaded', 'loaded, 1,020 rows']);
    expect(stateOf('2026-02-05')).toEqual(['read-again', 'read again, 1,005 rows']);
    expect(stateOf('2026-02-09')).toEqual(['not-there-yet', 'not there yet']);
  });

  it('shows a day that is not over as read so far, and each day under its weekday', async () => {
    const report = exampleReport();
    const { receipts } = report.state;
    const today = { from: '2026-02-08', to: '2026-02-10', covers_from: '2026-02-08', covers_to: '2026-02-09' } as const;
    const open = { from: '2026-02-10', to: '2026-02-10', covers_from: '2026-02-10', covers_to: null } as const;
    const more = [today, open].map((days) => ({ ...receipts[0], ...days }));
    const page = await reportPage({ ...report, state: { ...report.state, receipts: [...receipts, ...more] } }, OPTIONS);
    const days = section(page, 'Days');
    expect(days).toContain('class="so-far" title="2026-02-10: so far"');
    // What a window of several days held is of none of them alone.
    for (const day of ['2026-02-08', '2026-02-09']) expect(days).toContain(`class="loaded" title="${day}: loaded"`);
    // 1 February 2026 is a Sunday.
    const february = days.slice(days.indexOf('<caption>2026-02'));
    expect(february.match(/<tr>((?:<td><\/td>)*)<td class="loaded" title="2026-02-01/)?.[1]).toBe(
      '<td></td>'.repeat(6),
    );
  });

  it('shows the latest hundred runs, the latest first', async () => {
    const report = exampleReport();
    const began = (i: number) => new Date(Date.UTC(2026, 0, 1) + i * 3_600_000).toISOString();
    const runs = Array.from({ length: 150 }, (_, i) => ({ ...report.runs[0], began: began(i) }));
    const shown = section(await reportPage({ ...report, runs }, OPTIONS), 'Runs');
    const times = [...shown.matchAll(/<tr><td class="text">([^<]*)</g)].map(([, time]) => time);
    const reported = Array.from({ length: 100 }, (_, i) =>
      began(149 - i)
        .slice(0, 19)
        .replace('T', ' '),
    );
    expect(times).toEqual(reported);
  });

  it('counts events by name, the most frequent ones separately, and by hour of the day', async () => {
    const page = await reportPage(exampleReport(), OPTIONS);
    expect(section(page, 'Events by name')).toContain('<td class="text">all others</td><td class="number">180</td>');
    expect(page).toContain('most at 20:00, 500 events');
    expect(page.match(/<svg /g)).toHaveLength(4);
  });

  it('lists columns with fill and rescued cells, changes, and runs with their causes', async () => {
    const page = await reportPage(exampleReport(), OPTIONS);
    expect(section(page, 'Columns')).toContain('<td class="number">25.0 %</td><td class="number">3</td>');
    expect(page).toContain('widened long → string');
    expect(section(page, 'Runs')).toContain('2 of them not ended well');
    expect(section(page, 'Runs')).toContain('exit 3: The service is down.');
    expect(section(page, 'Runs')).toContain('began and never ended');
  });

  it('is a page also for a target without rows', async () => {
    const empty = {
      ...exampleReport(),
      rows: 0,
      events: [],
      columns: [],
      runs: [],
      state: newState('Asia/Seoul', ['events']),
    };
    const page = await reportPage({ ...empty, lastEventAt: null }, OPTIONS);
    expect(page).toContain('Nothing was loaded yet.');
    expect(page).not.toMatch(/NaN|undefined|null/);
  });
});

it('a report calls a day lost by the given history_days', async () => {
  const fixture = new DuckDbFixture();
  try {
    await fixture.load([fixture.windowOf('2026-01-06')]);
    const page = `${fixture.dir}/page.html`;
    const isLost = async (env: Record<string, string>) => {
      const done = await runHere(['report', 'duckdb', fixture.file, '-o', page], { env });
      expect(done.code, done.stderr).toBe(0);
      return readFileSync(page, 'utf8').includes('class="lost-soon" title="2026-01-07: lost in 0 days"');
    };
    expect([await isLost({}), await isLost({ DFINERY_HISTORY_DAYS: '3650' })]).toEqual([true, false]);
  } finally {
    fixture.close();
  }
});

it('a report of a DuckDB file refuses a state that somebody has changed into none', async () => {
  const fixture = new DuckDbFixture();
  try {
    await fixture.load([fixture.windowOf('2026-01-06')]);
    await fixture.query(`UPDATE _dfinery_state SET state = '{"version":1,"from_date":"2026-01-07","gaps":5}'`);
    const done = await runHere(['report', 'duckdb', fixture.file, '-o', `${fixture.dir}/page.html`]);
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('gaps must be array')]);
  } finally {
    fixture.close();
  }
});
