import { count } from '../../base/quantities.ts';
import type { ReportedColumn, TargetReport } from '../../sinks/report.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { type Html, html } from './html.ts';
import { list } from './list.ts';

/** Changes shown. */
const MOST_CHANGES = 100;

/** The columns with type, fill and rescues, and when they changed. */
export function columnSection({ columns, rows, changes }: TargetReport): Html {
  const share = ({ filled }: ReportedColumn) => (rows === 0 ? 0 : filled / rows);
  const table = list<ReportedColumn>(
    'Columns',
    [
      { title: 'column', cell: ({ name }) => name },
      { title: 'group', cell: ({ group }) => group.replaceAll('_', ' ') },
      { title: 'type', cell: ({ type }) => type ?? 'no value yet' },
      { title: 'filled', isNumber: true, cell: (column) => `${(share(column) * 100).toFixed(1)} %` },
      { title: 'rescued cells', isNumber: true, cell: ({ rescued }) => rescued.toLocaleString('en-US') },
    ],
    columns,
  );
  return html`<section><h2>Columns</h2>${table}${changeList(changes)}</section>`;
}

function changeList(changes: readonly ColumnChange[]): Html {
  if (changes.length === 0) return html``;
  const table = list<ColumnChange>(
    'Changes of columns',
    [
      { title: 'when (UTC)', cell: ({ changedAt }) => changedAt.slice(0, 16).replace('T', ' ') },
      { title: 'column', cell: ({ sourceName }) => sourceName },
      { title: 'change', cell: ({ change, fromType, toType }) => [change, typesOf(fromType, toType)].join(' ') },
      { title: 'first such cell', cell: ({ shape }) => shape ?? '' },
    ],
    [...changes].reverse().slice(0, MOST_CHANGES),
  );
  return html`<h2>Changes of columns</h2><p>${count(changes.length, 'change')}, the latest first.</p>${table}`;
}

function typesOf(from: string | null, to: string | null): string {
  if (from !== null && to !== null) return `${from} → ${to}`;
  return to === null ? '' : `as ${to}`;
}
