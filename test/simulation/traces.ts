import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { literal } from '../../src/cells/types/sql.ts';
import { identifier } from '../../src/engine/session/quote.ts';
import type { Planned } from './people.ts';
import { ask, inDatabase, parquet } from './places.ts';
import type { Simulation } from './simulation.ts';

type Purged = Pick<Planned, 'people' | 'memberNumbers'>;

/** The places where bytes still name people who were purged: target, copies, downloads and temporary files. */
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
      const isNamed = path.includes('_delta_log') ? isAnywhere(names) : `df_unified_id IN (${names})`;
      const rows = await ask(`SELECT count(*) AS n FROM ${parquet([path])} r WHERE ${isNamed}`);
      if (Number(rows[0].n) > 0) out.push(`${path} still has rows of people who were purged`);
    }
    const bytes = readFileSync(path);
    if (bytes.subarray(DUCKDB_MAGIC.at).toString('latin1', 0, 4) === DUCKDB_MAGIC.text && names !== '') {
      for (const table of await tablesNaming(path, names)) out.push(`${path} still names purged people in ${table}`);
    }
    for (const text of texts) if (bytes.includes(text)) out.push(`${path} still names ${text}, who was purged`);
  }
  return out;
}

/** A file of DuckDB has this text at this byte. */
const DUCKDB_MAGIC = { at: 8, text: 'DUCK' };

/** The condition that a row `r` has one of these texts as a word in any column. */
const isAnywhere = (names: string): string =>
  `list_has_any([${names}], regexp_extract_all(CAST(to_json(r) AS VARCHAR), '\\w+'))`;

/** Tables of a DuckDB file with rows that have one of these texts, which may be compressed in its bytes. */
async function tablesNaming(file: string, names: string): Promise<string[]> {
  const found = await inDatabase(file, async () => {
    const tables = await ask("SELECT table_name AS name FROM duckdb_tables() WHERE database_name = 'held'");
    const out: string[] = [];
    for (const { name } of tables) {
      const [{ n }] = await ask(`SELECT count(*) AS n FROM ${identifier(String(name))} r WHERE ${isAnywhere(names)}`);
      if (Number(n) > 0) out.push(String(name));
    }
    return out;
  });
  return found ?? [];
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
