import { hashedIn } from '../../extract/state.ts';
import { readFiles } from '../sql/files/parquet-file.ts';
import { findPeople } from '../sql/people.ts';
import type { Match, TextsIn } from '../target.ts';
import { type DatasetOptions, openExisting } from './dataset/dataset.ts';
import { eventFiles } from './dataset/manifest.ts';

/** The people of the rows whose column holds one of these texts. Opens the folder as its writer. */
export async function peopleInParquet(options: DatasetOptions, column: string, textsIn: TextsIn): Promise<Match> {
  const dataset = await openExisting(options);
  try {
    const paths = eventFiles(dataset.manifest).map(({ path }) => dataset.pathOf(path));
    const from = paths.length === 0 ? undefined : readFiles(paths);
    const { engine, manifest } = dataset;
    const rows = { engine, from, columns: manifest.columns, place: options.dir };
    return await findPeople(rows, column, textsIn(hashedIn(manifest.state)));
  } finally {
    await dataset.close();
  }
}
