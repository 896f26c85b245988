import { addDays, dayAt } from '../../base/days.ts';
import { formatCount } from '../../base/quantities.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { defineCommand, flag, required, wordOption } from '../command.ts';
import { placeOptions } from '../configuration.ts';
import { configuredPlace, placeArguments } from '../place-arguments.ts';
import { during } from '../progress.ts';

const daysOfAge = wordOption(
  'Age of the days that go, such as 760d',
  'an age such as 760d, of 9999d at most',
  (word) => (/^[1-9]\d{0,3}d$/.test(word) ? Number.parseInt(word, 10) : undefined),
);

export const command = defineCommand({
  options: {
    ...placeArguments(STATEFUL_TARGETS),
    olderThan: required(daysOfAge),
    execute: flag('Remove them; without it the plan is shown'),
  },
  examples: ['prune duckdb events.duckdb --older-than 760d', 'prune delta events --older-than 760d --execute'],
  docsPage: 'operations.md',
  async run({ olderThan, execute, ...values }, context) {
    const { config, place } = configuredPlace(values, STATEFUL_TARGETS, context);
    const { target, path } = place;
    const before = addDays(dayAt(context.clock.now()), -olderThan);
    const maintenance = await target.maintenance();
    const options = { ...placeOptions(config, context), execute };
    const work = () => maintenance.prune(path, before, options);
    const { days, rows } = await during(`Pruning ${path}`, work, context);
    const what = `${formatCount(days.length, 'day')} before ${before} with ${formatCount(rows, 'row')}`;
    const result = { v: 1, target: target.name, place: path, before, executed: execute, days, rows };
    if (days.length === 0)
      return { result, lines: [`Nothing to remove: ${path} has no rows of days before ${before}.`] };
    const plan = `This would remove ${what}. To do so, add --execute.`;
    return { result, lines: [execute ? `Removed ${what} from ${path}.` : plan] };
  },
});
