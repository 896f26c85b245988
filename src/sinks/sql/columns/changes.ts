import type { Logger } from '../../../base/log.ts';
import { plainCount } from '../../../base/quantities.ts';
import type { Commit } from '../../sink.ts';
import type { PlannedColumn } from './plan.ts';
import { isRetyped } from './retype.ts';

/** What a window changes of the columns of a target; `isFirst`: nothing was committed before it. */
export function columnChanges(
  columns: readonly PlannedColumn[],
  isFirst: boolean,
): Pick<Commit, 'columnsAdded' | 'columnsWidened'> {
  const added = columns.filter((column) => column.type !== null && (column.before === null || isFirst));
  return {
    columnsAdded: added.map(({ name }) => name),
    columnsWidened: columns.filter(isRetyped).map(({ name, before, type }) => ({ name, from: before, to: type })),
  };
}

/** Logs which columns change their type, and the cells that did not fit. `rescued`: cells by source column. */
export function logChanges(
  logger: Logger,
  columns: readonly PlannedColumn[],
  rescued: ReadonlyMap<string, number>,
): void {
  for (const { source, before, type, shape = null } of columns.filter(isRetyped)) {
    const because = shape === null ? '' : `: first such cell ${shape}`;
    const message = `column ${source} changes from ${before} to ${type}${because}`;
    logger.info('schema.changed', message, { column: source, from: before, to: type, shape });
  }
  for (const [column, cells] of rescued) {
    const message =
      cells === 1
        ? `1 cell of column ${column} does not fit its type; its text is in _rescued`
        : `${plainCount(cells, 'cell')} of column ${column} do not fit its type; their text is in _rescued`;
    logger.warn('cells.rescued', message, { column, cells });
  }
}
