/** Reserved column names; a column of the export with such a name gets a suffix. */
export const OWN_NAMES = [
  '_key',
  '_rescued',
  '_dfinery_window',
  'event_date',
  'item_position',
  '_dfinery_file',
] as const;

/** The name of a column whose header cell is empty. */
const UNNAMED = 'column';
const encoder = new TextEncoder();

/**
 * The form in which names are compared: DuckDB folds ASCII case, Spark lower-cases all of Unicode, which covers both.
 */
export function foldName(name: string): string {
  return name.toLowerCase();
}

/** Orders texts by their UTF-8 bytes. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(encoder.encode(a), encoder.encode(b));
}

/**
 * Table names for the new columns of one window, in the order given. Names that fold alike get `_2`, `_3`… in order of their
 * bytes, equal names in the order given; names that are taken are skipped.
 */
export function assignNames(taken: Iterable<string>, incoming: readonly string[]): string[] {
  const used = new Set([...taken].map(foldName));
  const names = new Array<string>(incoming.length);
  const order = incoming.map((_, i) => i).sort((a, b) => compareBytes(incoming[a], incoming[b]) || a - b);
  for (const i of order) names[i] = claim(used, incoming[i].replaceAll('\0', '\ufffd') || UNNAMED);
  return names;
}

/**
 * Names of item columns without their prefix, where nothing else has that name; with it where dropping it collides.
 * `names` are table names.
 */
export function assignItemNames(taken: Iterable<string>, names: readonly string[], prefix: string): string[] {
  const used = new Set([...taken].map(foldName));
  return names.map((name) => {
    const short = name.slice(prefix.length);
    return claim(used, short === '' || used.has(foldName(short)) ? name : short);
  });
}

/** Takes the name, or the first `name_n` that is free. */
function claim(used: Set<string>, name: string): string {
  let free = name;
  for (let n = 2; used.has(foldName(free)); n++) free = `${name}_${n}`;
  used.add(foldName(free));
  return free;
}
