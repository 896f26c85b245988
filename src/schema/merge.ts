import { typeOf } from '../types/index.ts';
import { groupOf, KNOWN_COLUMNS } from './groups.ts';
import type { ColumnScan } from './scan.ts';

/** The columns of several exports: of one as they are, of several the union by name, in the order of first sight. */
export function mergeColumns(parts: readonly (readonly ColumnScan[])[], asInstants: boolean): readonly ColumnScan[] {
  if (parts.length === 1) return parts[0];
  const merged = new Map<string, ColumnScan>();
  for (const columns of parts) {
    const seen = new Map<string, number>();
    for (const column of columns) {
      // A name that stands twice in one header is two columns.
      const nth = (seen.get(column.source) ?? 0) + 1;
      seen.set(column.source, nth);
      const key = JSON.stringify([column.source, nth]);
      const known = merged.get(key);
      merged.set(key, known === undefined ? column : joinScans(known, column, asInstants));
    }
  }
  return [...merged.values()];
}

function joinScans(a: ColumnScan, b: ColumnScan, asInstants: boolean): ColumnScan {
  const evidence = a.evidence | b.evidence;
  const type = isDeclared(a) ? (a.type ?? b.type) : typeOf(evidence, asInstants);
  const seen = [...(a.seen ?? []), ...(b.seen ?? []).filter((item) => (item.evidence & ~a.evidence) !== 0)];
  const times = [a.first, a.last, b.first, b.last].flatMap((time) => time ?? []).sort();
  return {
    source: a.source,
    group: a.group,
    ...(a.hashed && { hashed: a.hashed }),
    evidence,
    ...(type !== undefined && { type }),
    filled: a.filled + b.filled,
    misfits: a.misfits + b.misfits,
    ...(type === 'datetime' && times.length > 0 && { first: times[0], last: times[times.length - 1] }),
    ...(seen.length > 0 && { seen }),
  };
}

/** A column of a group that the service fixes has a type of its own; a second one of the same name has not. */
const isDeclared = ({ source, group }: ColumnScan): boolean => KNOWN_COLUMNS.has(source) && group === groupOf(source);
