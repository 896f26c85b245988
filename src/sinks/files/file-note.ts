import type { DataFile } from './log.ts';

/** What this program notes of a file beside what its log says of every file, as JSON. */
export interface FileNote {
  readonly id: string;
  readonly sha256?: string;
  /** Of `events`: rows by the number of the window that last wrote them, as text. */
  readonly windows?: Readonly<Record<string, number>>;
  /** Of a derived table: the id of the file of `events` that its rows come from. */
  readonly source?: string;
  readonly is_sorted?: boolean;
}

export const noteOf = ({ table, id, sha256, windows, source, isSorted }: DataFile): FileNote => ({
  id,
  ...(sha256 !== undefined && { sha256 }),
  ...(table === 'events' && { windows: Object.fromEntries(windows) }),
  ...(source !== undefined && { source }),
  ...(isSorted && { is_sorted: true }),
});

/** The members of a file that a note has. */
export function notedOf(note: FileNote): Pick<DataFile, 'id' | 'sha256' | 'windows' | 'source' | 'isSorted'> {
  const { id, sha256, windows = {}, source, is_sorted: isSorted = false } = note;
  const rows = Object.entries(windows).map(([window, n]) => [Number(window), n] as const);
  return { id, sha256, windows: new Map(rows), isSorted, ...(source !== undefined && { source }) };
}
