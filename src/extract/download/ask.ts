import type { Day } from '../../base/days.ts';
import { exportQuestion } from '../question.ts';
import { fetchExport } from './fetch.ts';
import { fetchByNames } from './names.ts';
import type { Run } from './run.ts';
import { rowsSent, type Verified } from './verified.ts';

/** What the service has for [from, to]: one file, or one per part of a day that had to be split by names. */
export interface Answered {
  readonly kind: 'rows';
  readonly from: Day;
  readonly to: Day;
  readonly parts: readonly Verified[];
  readonly split: 'none' | 'names';
}

export type Asked = Answered | { readonly kind: 'gone' | 'invalid' | 'too_big'; readonly message: string };

export interface AskOptions {
  /** The last day that the answer is to make complete. */
  readonly through: Day;
  /** Whether an answer that is too big is split by names here; else the caller asks for fewer days. */
  readonly single: boolean;
}

export async function ask(run: Run, from: Day, to: Day, options: AskOptions): Promise<Asked> {
  // A day after one that was too big is tried whole once, not three times.
  const splitAfter = options.single && run.known.nameGroups !== undefined ? 1 : undefined;
  const question = exportQuestion(run.plan.filters, from, to);
  const found = await fetchExport(run, question, { through: options.through, splitAfter });
  if (found.kind === 'verified') return { kind: 'rows', from, to, parts: [found.part], split: 'none' };
  if (found.kind !== 'too_big' || !options.single) return found;
  const parts = await fetchByNames(run, { from, to, through: options.through });
  return { kind: 'rows', from, to, parts, split: 'names' };
}

export const totalRows = (answer: Answered): number => answer.parts.reduce((sum, part) => sum + rowsSent(part), 0);

/** When the earliest of its parts was sent for: what was over then is complete in all of them. */
export const sentAtOf = (answer: Answered): number => Math.min(...answer.parts.map((part) => part.sentAt));

export async function discardAnswer(run: Run, answer: Asked): Promise<void> {
  if (answer.kind === 'rows') for (const part of answer.parts) await run.spool.discard(part);
}
