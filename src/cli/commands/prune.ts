import { addDays, type Day, dayAt, startOf } from '../../base/days.ts';
import { formatCount } from '../../base/quantities.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { defineCommand, flagOption, required, wordOption } from '../command.ts';
import { readPlaceAndConfig } from '../places.ts';
import { withElapsedTime } from '../terminal/progress.ts';

const AGE_OPTION = wordOption(
  'Age of the days that go: 25mo, 8w or 90d',
  'an age such as 25mo, 8w or 90d, of four digits at most',
  (word) => {
    const match = /^([1-9]\d{0,3})(mo|w|d)$/.exec(word);
    return match === null ? undefined : { amount: Number(match[1]), unit: match[2] };
  },
);

export const command = defineCommand({
  targets: STATEFUL_TARGETS,
  options: {
    olderThan: required(AGE_OPTION),
    execute: flagOption('Remove them; without it the plan is shown'),
  },
  examples: ['prune duckdb events.duckdb --older-than 25mo', 'prune delta events --older-than 25mo --execute'],
  docsPage: 'operations.md',
  async run({ olderThan, execute, ...values }, context) {
    const { place } = readPlaceAndConfig(values, STATEFUL_TARGETS, context);
    const { target, address } = place;
    const before = subtractAge(dayAt(context.clock.now()), olderThan);
    const maintenance = await target.maintenance(place);
    const { days, rows } = await withElapsedTime(`Pruning ${address}`, maintenance.prune(before, execute), context);
    const loss = `${formatCount(days.length, 'day')} before ${before} with ${formatCount(rows, 'row')}`;
    const result = { v: 1, target: target.name, place: address, before, executed: execute, days, rows };
    if (days.length === 0)
      return { result, lines: [`Nothing to remove: ${address} has no rows of days before ${before}.`] };
    const line = execute ? `Removed ${loss} from ${address}.` : `This would remove ${loss}. To do so, add --execute.`;
    return { result, lines: [line] };
  },
});

/** The day so many months (`mo`), weeks (`w`) or days before another. A month that is too short gives its last day. */
export function subtractAge(day: Day, { amount, unit }: { amount: number; unit: string }): Day {
  if (unit !== 'mo') return addDays(day, -amount * (unit === 'w' ? 7 : 1));
  const date = new Date(startOf(day));
  date.setUTCMonth(date.getUTCMonth() - amount);
  if (date.getUTCDate() !== Number(day.slice(8))) date.setUTCDate(0);
  return dayAt(date.getTime());
}
