import type { Day } from '../../../src/base/days.ts';

/** The cells of an event by column; `id` is its detail log id. */
export type Cells = Readonly<Record<string, string>>;

const SYSTEM = [
  'df_api_version',
  'df_correction_datetime',
  'df_event_detail_log_id',
  'df_event_log_id',
  'df_event_name',
];

/** The times of an event on a day. */
export const on = (day: Day, time = '10:00:00.000'): Cells => ({
  df_server_datetime: `${day} ${time}`,
  df_correction_datetime: `${day} ${time}`,
});

/** CSV of events `{ id, … }`: the columns that every export has, filled in where they are not given. */
export function csvOf(rows: readonly Cells[], columns: readonly string[] = []): string {
  const custom = new Set([...columns, ...rows.flatMap((row) => Object.keys(row).filter((name) => name !== 'id'))]);
  const header = [...new Set([...SYSTEM, 'df_server_datetime', 'df_unified_id', ...custom])].sort();
  const lines = rows.map((row) => header.map((name) => quoted(row[name] ?? common(row.id, name))).join(','));
  return `${[header.map(quoted).join(','), ...lines].join('\n')}\n`;
}

function common(id: string | undefined, name: string): string {
  if (name === 'df_event_detail_log_id') return id ?? '';
  if (name === 'df_event_log_id') return id === undefined ? '' : id.replace(/:\d+$/, '');
  if (name === 'df_event_name') return 'df_login';
  if (name === 'df_unified_id') return 'u-1';
  return name.endsWith('_datetime') && SYSTEM.concat('df_server_datetime').includes(name)
    ? '2026-01-01 10:00:00.000'
    : '';
}

export const quoted = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/**
 * Rows of 46 columns; one cell holds pasted rows across the end of a reader's buffer. `cell`: that of a column in all rows,
 * where the pasted ones have other texts.
 */
export function pastedRows(cell: string): string {
  const names = Array.from({ length: 40 }, (_, i) => `c${String(i).padStart(2, '0')}`);
  const cells = (i: number): Cells => Object.fromEntries(names.map((name, k) => [name, `v${k}_${i % 97}`]));
  const [header, ...lines] = csvOf(Array.from({ length: 97 }, (_, i) => ({ id: 'ID', ...cells(i) })))
    .trimEnd()
    .split('\n');
  const lineOf = (id: string, i: number) => (lines[i % 97] ?? '').replaceAll('ID', id);
  const block = Array.from({ length: 4_000 }, (_, i) => lineOf(`p${i}`, i)).join('\n');
  const all = [header];
  for (let bytes = 0, i = 0; bytes < 12e6; i++) {
    let line = lineOf(`i${i}`, i).replace(/,v6_\d+,/, `,${cell},`);
    if (bytes < 3.5e6 && bytes + line.length + 1 >= 3.5e6) line = line.replace(/,v5_\d+,/, `,"${block}",`);
    all.push(line);
    bytes += line.length + 1;
  }
  return `${all.join('\n')}\n`;
}
