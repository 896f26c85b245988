import { type StoredColumn, typedColumns } from '../../../table/columns.ts';
import type { Engine } from '../../sql/engine/engine.ts';
import { eventItems, eventLogs } from '../../sql/views.ts';

/** Recreates `event_logs` and `event_items` over the columns that the table now has. */
export async function createViews(engine: Engine, columns: readonly StoredColumn[]): Promise<void> {
  const typed = typedColumns(columns);
  await engine.run(`CREATE OR REPLACE VIEW event_logs AS ${eventLogs(typed)}`);
  await engine.run(`CREATE OR REPLACE VIEW event_items AS ${eventItems(typed)}`);
}
