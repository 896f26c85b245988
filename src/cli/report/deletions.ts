import { type Html, html } from './html.ts';
import { list } from './list.ts';

/** One run of deletions as its ledger tells it: counts, no ids. */
export interface DeletionCounts {
  readonly run: string;
  readonly began: string;
  readonly done: number;
  readonly rejected: number;
  readonly undecided: number;
  /** Whether the ledger says that the run ended by itself. */
  readonly isClosed: boolean;
}

/** The deletions of a ledger, a row a run. */
export function deletionSection(runs: readonly DeletionCounts[] | undefined): Html {
  if (runs === undefined) return html``;
  if (runs.length === 0) return html`<section><h2>Deletions</h2><p>The ledger holds no run.</p></section>`;
  const table = list<DeletionCounts>(
    'Deletions',
    [
      { title: 'began (UTC)', cell: ({ began }) => began.slice(0, 19).replace('T', ' ') },
      { title: 'deleted', isNumber: true, cell: ({ done }) => done },
      { title: 'rejected', isNumber: true, cell: ({ rejected }) => rejected },
      { title: 'undecided', isNumber: true, cell: ({ undecided }) => undecided },
      { title: 'ended', cell: ({ isClosed }) => (isClosed ? 'yes' : 'no') },
    ],
    runs,
  );
  return html`<section><h2>Deletions</h2>${table}</section>`;
}
