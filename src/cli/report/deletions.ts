import { count } from '../../base/quantities.ts';
import type { LedgerCounts } from '../../deletion/ledger/counts.ts';
import { type Html, html } from './html.ts';
import { list } from './list.ts';

/** The deletions of a ledger, a row a run; of a ledger that is not whole only what is wrong with it. */
export interface ReportedDeletions {
  readonly runs: readonly LedgerCounts[];
  readonly problems: readonly string[];
}

/** Problems shown. */
const MOST_PROBLEMS = 20;

export function deletionSection(deletions: ReportedDeletions | undefined): Html {
  if (deletions === undefined) return html``;
  const { runs, problems } = deletions;
  if (problems.length > 0) {
    const shown = problems.slice(0, MOST_PROBLEMS).map((problem) => html`<li>${problem}</li>`);
    return html`<section><h2>Deletions</h2><p>The ledger is broken: its counts prove nothing.</p><ul>${shown}</ul></section>`;
  }
  if (runs.length === 0) return html`<section><h2>Deletions</h2><p>The ledger holds no run.</p></section>`;
  const table = list<LedgerCounts>(
    'Deletions',
    [
      { title: 'began (UTC)', cell: ({ began }) => began.slice(0, 19).replace('T', ' ') },
      { title: 'deleted', isNumber: true, cell: ({ done }) => done },
      { title: 'rejected', isNumber: true, cell: ({ rejected }) => rejected },
      { title: 'undecided', isNumber: true, cell: ({ undecided }) => undecided },
      { title: 'came to its end', cell: ({ isClosed }) => (isClosed ? 'yes' : 'no') },
    ],
    runs,
  );
  const done = runs.reduce((sum, run) => sum + run.done, 0);
  return html`<section><h2>Deletions</h2><p>${count(done, 'deletion')} in ${count(runs.length, 'run')}; the ledger is whole.</p>${table}</section>`;
}
