import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { reportPage } from '../../../src/cli/report/report-page.ts';
import { newPlaceState } from '../../../src/table/place-state.ts';
import { receiptsOf } from '../../../src/table/receipts.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { Place } from '../../support/targets/place.ts';
import { exampleReport, HOSTILE, receiptOf } from '../../support/targets/report.ts';

const OPTIONS = {
  placeName: `duckdb ${HOSTILE}.duckdb`,
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
    expect(page).toContain('&#60;b onclick=&#34;x&#34;&#62;');
    expect(page).toContain('\\u202e');
  });

  it('shows the status of each day', async () => {
    const days = section(await reportPage(exampleReport(), OPTIONS), 'Days');
    const stateOf = (day: string) => new RegExp(`class="([a-z-]+)" title="${day}: ([^"]*)"`).exec(days)?.slice(1, 3);
    expect(stateOf('2026-01-15')).toEqual(['lost-soon', 'lost in 4 days']);
    expect(stateOf('2026-01-12')).toEqual(['lost', 'lost']);
    expect(stateOf('2026-01-20')).toEqual(['loaded', 'loaded, 1,020 rows']);
    expect(stateOf('2026-02-09')).toEqual(['not-there-yet', 'not there yet']);
  });

  it('ends with end_date, and calls no later day lost', async () => {
    const days = section(await reportPage(exampleReport(), { ...OPTIONS, endDate: '2026-02-08' }), 'Days');
    expect(days).toContain('title="2026-02-08: ');
    expect(days).not.toContain('title="2026-02-09: ');
  });

  it('says of a day that today can be exported for the last time that it is lost after today', async () => {
    const page = await reportPage(exampleReport(), { ...OPTIONS, historyDays: OPTIONS.historyDays - 4 });
    expect(page).toContain('class="lost-soon" title="2026-01-15: lost after today"');
  });

  it('shows what the next run does with a day, each day under its weekday, each state in a colour', async () => {
    const report = exampleReport();
    const open = { ...receiptOf('2026-02-10'), is_over: false };
    const pruned = { ...receiptOf('2026-01-17'), pruned: true as const };
    const empty = { ...receiptOf('2026-02-06'), rows: 0 };
    const receipts = receiptsOf([...report.state.events.receipts.values(), open, pruned, empty]);
    const page = await reportPage({ ...report, state: { events: { ...report.state.events, receipts } } }, OPTIONS);
    const days = section(page, 'Days');
    expect(days).toContain('class="so-far" title="2026-02-10: so far');
    expect(days).toContain('class="pruned" title="2026-01-17: pruned');
    expect(days).toContain('class="read-again" title="2026-02-06: read again, 0 rows');
    // 1 February 2026 is a Sunday.
    const shown = [...days.matchAll(/<span class="swatch ([a-z-]+)">/g)].map(([, state]) => state);
    expect(shown).toHaveLength(7);
    expect(shown.filter((state) => !page.includes(`.${state} { background:`))).toEqual([]);
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
    expect(times).toEqual(
      runs
        .slice(50)
        .map((run) => run.began.slice(0, 19).replace('T', ' '))
        .reverse(),
    );
  });

  it('counts events by name, the most frequent ones separately', async () => {
    const page = await reportPage(exampleReport(), OPTIONS);
    expect(section(page, 'Events by name')).toContain('<td class="text">all others</td><td class="number">180</td>');
  });

  it('tells an event apart from the rest', async () => {
    const eventCounts = ['all others', null].map((name, i) => ({ day: '2026-02-01', name, count: i + 7 }));
    const shown = section(await reportPage({ ...exampleReport(), eventCounts }, OPTIONS), 'Events by name');
    const totals = [...shown.matchAll(/<td class="number">(\d+)<\/td>/g)].map(([, total]) => Number(total));
    expect(totals).toEqual([7, 8]);
  });

  it('has whole numbers alone at its scale of events, also for a day with one event', async () => {
    const eventCounts = [{ day: '2026-02-01', name: 'a', count: 1 }];
    const shown = section(await reportPage({ ...exampleReport(), eventCounts }, OPTIONS), 'Events by name');
    expect(shown).toContain('<div class="scale"><span>1</span><span>0</span></div>');
  });

  it('lists columns with fill and rescued cells, changes, and runs with their causes', async () => {
    const page = await reportPage(exampleReport(), OPTIONS);
    expect(section(page, 'Columns')).toContain('<td class="number">25.0%</td><td class="number">3</td>');
    const changes = section(page, 'Changes of columns');
    expect(changes).toContain('widened long → string');
    expect(changes, 'the first load changes no column').not.toContain('added');
    expect(section(page, 'Runs')).toContain('1 of 2 runs failed');
    expect(section(page, 'Runs')).toContain('exit 3: The service is down.');
  });

  it('ends its calendar today, whatever the newest event says', () => {
    const page = reportPage({ ...exampleReport(), lastEventAt: '2099-01-01 00:00:00' }, OPTIONS);
    expect(page).toContain('<caption>2026-02</caption>');
    expect(page).not.toContain('<caption>2099-01</caption>');
  });

  it('is a page also for a target without rows', async () => {
    const counts = { rows: 0, lastEventAt: null, eventCounts: [], columns: [] };
    const page = reportPage({ ...exampleReport(), ...counts, runs: [], state: newPlaceState('Asia/Seoul') }, OPTIONS);
    expect(page).toContain('Nothing was loaded yet.');
    expect(page).not.toMatch(/NaN|undefined|null/);
  });
});

it('a report calls a day lost by the given history_days', async () => {
  const place = new Place('duckdb');
  await place.load([[place.of('2026-01-06', [{ id: 'a' }])]]);
  const page = `${place.dir}/page.html`;
  const isLost = async (env: Record<string, string>) => {
    const done = await runHere(['report', 'duckdb', place.place, '-o', page], { env });
    expect(done.code, done.stderr).toBe(0);
    return readFileSync(page, 'utf8').includes('class="lost" title="2026-01-07: lost');
  };
  expect([await isLost({}), await isLost({ DFINERY_HISTORY_DAYS: '3650' })]).toEqual([true, false]);
});
