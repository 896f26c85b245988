import { TABLES, type TableName } from '../../table/columns.ts';
import { derive } from './commit/derived.ts';
import { metadataOf } from './commit/metadata.ts';
import { describe, filesAfter, moveOf } from './commit/outputs.ts';
import { type Dataset, WRITER } from './dataset/dataset.ts';
import { partitionOf } from './dataset/layout.ts';
import { eventFiles, type Manifest } from './dataset/manifest.ts';

/** Makes the datasets that a folder does not keep yet from the `events` it has; kept from then on. */
export async function addTables(
  dataset: Dataset,
  manifest: Manifest,
  wanted: readonly TableName[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const added = wanted.filter((name) => !manifest.tables.includes(name));
  if (added.length === 0) return;
  const old = eventFiles(manifest);
  const events = old.map(({ path }) => ({
    dataset: 'events' as const,
    date: partitionOf(path).date,
    path: dataset.pathOf(path),
  }));
  const metadata = metadataOf(manifest.columns, manifest.receipts.at(-1));
  const work = async () => {
    const derived = await derive({
      dataset,
      tables: added,
      columns: manifest.columns,
      metadata,
      old,
      events,
    });
    return { derived, files: await describe(dataset, derived) };
  };
  const { derived, files } = await dataset.prepare(work, signal);
  const tables = TABLES.filter((name) => manifest.tables.includes(name) || added.includes(name));
  await dataset.change({
    moves: derived.map((output) => moveOf(dataset, output)),
    manifest: { ...manifest, writer: WRITER, tables, files: filesAfter(manifest.files, files) },
  });
}
