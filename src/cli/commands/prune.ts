import { addDays, type Day, dayAt } from '../../base/days.ts';
import { count } from '../../base/quantities.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { defineCommand, flag, required, wordOption } from '../command.ts';
import { placeOptions } from '../configuration.ts';
import { configuredPlace, placeArguments } from '../place-arguments.ts';
import { during } from '../progress.ts';

/** An age in calendar months, weeks or days: `25mo`, `8w`, `90d`. */
interface Age {
  readonly amount: number;
  readonly unit: 'mo' | 'w' | 'd';
}

const age = wordOption(
  'Age of the days that go: 25mo, 8w or 90d',
  'an age such as 25mo, 8w or 90d, of four digits at most',
  (word) => {
    const [, number, unit] = /^([1-9]\d{0,3})(mo|w|d)$/.exec(word) ?? [];
    return number === undefined ? undefined : ({ amount: Number(number), unit } as Age);
  },
);

export const command = defineCommand({
  options: {
    ...placeArguments(STATEFUL_TARGETS),
    olderThan: required(age),
    execute: flag('Remove them; without it the plan is shown'),
  },
  examples: ['prune duckdb events.duckdb --older-than 25mo', 'prune delta events --older-than 25mo --execute'],
  docsPage: 'operations.md',
  async run({ olderThan, execute, ...values }, context) {
    const { config, place } = configuredPlace(values, STATEFUL_TARGETS, context);
    const { target, path } = place;
    const before = dayBefore(dayAt(context.clock.now()), olderThan);
    const maintenance = await target.maintenance();
    const options = { ...placeOptions(config, context), execute };
    const work = () => maintenance.prune(path, before, options);
    const { days, rows } = await during(`Pruning ${path}`, work, context);
    const what = `${count(days.length, 'day')} before ${before} with ${count(rows, 'row')}`;
    const result = { v: 1, target: target.name, place: path, before, executed: execute, days, rows };
    if (days.length === 0)
      return { result, lines: [`Nothing to remove: ${path} has no rows of days before ${before}.`] };
    const plan = `This would remove ${what}. To do so, add --execute.`;
    return { result, lines: [execute ? `Removed ${what} from ${path}.` : plan] };
  },
});

/** The day so long before `today`; of a month that is too short its last day. */
export function dayBefore(today: Day, { amount, unit }: Age): Day {
  if (unit !== 'mo') return addDays(today, -amount * (unit === 'w' ? 7 : 1));
  const [year = 0, month = 1, day = 1] = today.split('-').map(Number);
  const first = new Date(Date.UTC(year, month - 1 - amount, 1));
  const last = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  return addDays(dayAt(first.getTime()), Math.min(day, last) - 1);
}
