import { addDays, type Day } from '../../base/days.ts';

const NAMED_RUNS = 40;

/** Formats days for a message: `2026-01-01`, `2026-01-01 to 2026-01-03`, `2026-01-01, 2026-01-04`. */
export function nameDays(days: readonly Day[]): string {
  const runs: string[] = [];
  for (let i = 0; i < days.length; i++) {
    const first = days[i];
    while (i + 1 < days.length && days[i + 1] === addDays(days[i], 1)) i++;
    runs.push(first === days[i] ? first : `${first} to ${days[i]}`);
  }
  if (runs.length <= NAMED_RUNS) return runs.join(', ');
  return `${runs.slice(0, NAMED_RUNS).join(', ')} and ${runs.length - NAMED_RUNS} more`;
}
