import type { Day } from '../../base/days.ts';
import { exportQuestion } from '../question.ts';
import type { DaysRequest, Downloaded, NotDownloaded } from './download.ts';
import { fetchExport } from './fetch.ts';
import type { Run } from './run.ts';
import { fetchByNames } from './split.ts';

/** The request for one day of the plan that ends at `to`; if it is too large, it is split by event names. */
export const dayRequest = (day: Day, to: Day): DaysRequest => ({ from: day, to, through: day, splitByNames: true });

/** The export of some days under the user's own filter. Throws a Failure as `fetchExport` does. */
export async function fetchDays(run: Run, request: DaysRequest): Promise<Downloaded | NotDownloaded> {
  const { from, to, through, splitByNames } = request;
  // After one day was too large, the next ones are tried whole only once.
  const splitAfter = splitByNames && run.known.nameGroups !== undefined ? 1 : undefined;
  const found = await fetchExport(run, exportQuestion(run.plan.filters, from, to), { through, splitAfter });
  if (found.kind !== 'too_big' || !splitByNames) return found;
  return { kind: 'rows', from, to, parts: await fetchByNames(run, request), split: 'names' };
}
