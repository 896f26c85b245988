// Prints the page of the example report: names made of markup, every kind of day, run and change.

import { reportPage } from '../../src/cli/report/report-page.ts';
import { exampleReport, HOSTILE } from '../support/targets/report.ts';

const page = await reportPage(exampleReport(), {
  placeName: `duckdb ${HOSTILE}.duckdb`,
  now: Date.UTC(2026, 1, 10),
  historyDays: 30,
});
process.stdout.write(page);
