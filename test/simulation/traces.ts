import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { literal } from '../../src/types/sql.ts';
import type { Planned } from './people.ts';
import { ask, parquet } from './places.ts';
import type { Simulation } from './simulation.ts';

type Purged = Pick<Planned, 'people' | 'memberNumbers'>;

/** Where bytes still name people who were purged: target, copies, downloads and temporary files (S37). */
export async function tracesOf(simulation: Simulation, { people, memberNumbers }: Purged): Promise<string[]> {
  const texts = people.map((one) => Buffer.from(one));
  const places = [
    ...named(simulation, simulation.place),
    ...named(simulation, simulation.published),
    simulation.spool,
    join(simulation.dir, 'tmp'),
  ];
  const out: string[] = [];
  const names = people.map((one) => literal(one)).join(', ');
  const held = memberNumbers.length > 0 ? (await simulation.held()).rows : [];
  if (held.some(({ cells }) => memberNumbers.includes(cells.get('member_no') ?? '')))
    out.push(`${simulation.place} still has rows with a member_no of people who were purged`);
  for (const path of places.flatMap(filesIn)) {
    // Texts in it may be compressed.
    if (path.endsWith('.parquet') && names !== '') {
      // A checkpoint of a log has no rows of people, and must name none of them anywhere.
      const isNamed = path.includes('_delta_log')
        ? `list_has_any([${names}], regexp_extract_all(CAST(to_json(r) AS VARCHAR), '\\w+'))`
        : `df_unified_id IN (${names})`;
      const rows = await ask(`SELECT count(*) AS n FROM ${parquet([path])} r WHERE ${isNamed}`);
      if (Number(rows[0].n) > 0) out.push(`${path} still has rows of people who were purged`);
    }
    const bytes = readFileSync(path);
    for (const text of texts) if (bytes.includes(text)) out.push(`${path} still names ${text}, who was purged`);
  }
  return out;
}

/** A place, and what is named after it beside it: logs, temporary files, copies. */
function named({ dir }: Simulation, place: string): string[] {
  const names = readdirSync(dir).filter((name) => name.includes(basename(place)));
  return names.map((name) => join(dir, name));
}

function filesIn(path: string): string[] {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  const inner = readdirSync(path, { recursive: true }).map((name) => join(path, String(name)));
  return inner.filter((one) => statSync(one).isFile());
}
