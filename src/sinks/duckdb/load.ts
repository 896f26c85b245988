import { defect } from '../../base/errors.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { identifier } from '../sql/engine/quote.ts';
import { fileQuery, idsAreKeys, type WindowLoad } from '../sql/rows/file-query.ts';
import { dropStaging, stageWindow } from '../sql/rows/staging.ts';

/** Puts all rows of a window into `events`. Inside a transaction. Throws Failure when the count differs. */
export async function loadWindow(engine: Engine, load: WindowLoad): Promise<void> {
  const { receipt } = load.window;
  const rows = idsAreKeys(load.window) ? await loadPlain(engine, load) : await loadStaged(engine, load);
  if (rows === receipt.rows) return;
  throw defect(
    `a window of ${receipt.rows} rows came to ${rows} in DuckDB: nothing of it was kept. Please report it.`,
    {
      where: { window: `${receipt.from}..${receipt.to}`, file: engine.file },
    },
  );
}

/** Ids are keys: one pass, in no particular order. */
async function loadPlain(engine: Engine, load: WindowLoad): Promise<number> {
  const source = fileQuery(load, 0);
  const names = ['_key', '_dfinery_window', '_rescued', ...source.columns.map((c) => c.name)].map(identifier);
  const values = [source.base, String(load.number), source.rescued ?? 'NULL', ...source.values];
  return engine.run(`INSERT INTO events (${names.join(', ')}) SELECT ${values.join(', ')} FROM ${source.from}`);
}

/** Keys need a second look: the rows are staged in their order (the engine must be told to keep it), numbered, moved. */
async function loadStaged(engine: Engine, load: WindowLoad): Promise<number> {
  const staged = await stageWindow(engine, load);
  const into = ['_key', '_dfinery_window', '_rescued', ...staged.columns.map((c) => c.name)].map(identifier).join(', ');
  const values = [staged.key, load.number, staged.rescued, ...staged.values].join(', ');
  const rows = await engine.run(`INSERT INTO events (${into}) SELECT ${values} FROM ${staged.from}`);
  await dropStaging(engine);
  return rows;
}
