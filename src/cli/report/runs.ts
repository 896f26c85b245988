import { count, megabytes } from '../../base/quantities.ts';
import type { TargetReport } from '../../sinks/report.ts';
import type { RunRecord } from '../../table/runs.ts';
import { type Html, html } from './html.ts';
import { list } from './list.ts';

/** Runs shown: the latest. */
const MOST_RUNS = 100;

/** The runs that opened the target, the latest first, with what they cost and how they ended. */
export function runSection({ runs }: TargetReport): Html {
  if (runs.length === 0) return html``;
  const latest = [...runs].sort((a, b) => (a.began < b.began ? 1 : -1)).slice(0, MOST_RUNS);
  const failed = runs.filter(({ exitCode }) => exitCode !== 0).length;
  const exports = runs.reduce((sum, run) => sum + run.exports, 0);
  const table = list<RunRecord>(
    'Runs',
    [
      { title: 'began (UTC)', cell: ({ began }) => began.slice(0, 19).replace('T', ' ') },
      { title: 'outcome', cell: outcomeOf },
      { title: 'rows', isNumber: true, cell: ({ rows }) => rows.toLocaleString('en-US') },
      { title: 'windows', isNumber: true, cell: ({ windows }) => windows },
      { title: 'exports', isNumber: true, cell: (run) => run.exports },
      { title: 'received', isNumber: true, cell: ({ bytes }) => megabytes(bytes) },
      { title: 'version', cell: ({ version }) => version },
    ],
    latest,
  );
  return html`<section><h2>Runs</h2><p>${count(runs.length, 'run')}, ${failed} of them not ended well; ${count(exports, 'export')} spent.</p>${table}</section>`;
}

function outcomeOf({ ended, exitCode, cause }: RunRecord): string {
  if (ended === null) return 'began and never ended';
  if (exitCode === 0) return 'done';
  return `exit ${exitCode}${cause === null ? '' : `: ${cause}`}`;
}
