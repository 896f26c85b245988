import { dayOf, eventTimes } from './event-time.ts';
import type { Model } from './model.ts';

/** People and events of each day, week or month that has an event. */
function active(name: string, unit: 'day' | 'week' | 'month', what: string): Model {
  return {
    name,
    grain: `One row a ${unit} with an event.`,
    columns: {
      [unit]: what,
      people: 'People with an event, by unified id.',
      new_people: `Of these, those whose first event of all is of this ${unit}.`,
      events: 'Events, those that name nobody included.',
      sessions: 'Start events (df_start_session).',
    },
    sql(source) {
      const period = `CAST(date_trunc('${unit}', ${dayOf(source, 'event_at')}) AS DATE)`;
      return `WITH event AS (
  ${eventTimes(source)}
), placed AS (
  SELECT *, ${period} AS period, min(${period}) OVER (PARTITION BY person) AS first_period
  FROM event
)
SELECT period AS ${unit}, count(DISTINCT person) AS people,
  count(DISTINCT person) FILTER (WHERE period = first_period) AS new_people, count(*) AS events,
  count(*) FILTER (WHERE name = 'df_start_session') AS sessions
FROM placed
WHERE period IS NOT NULL
GROUP BY period`;
    },
  };
}

export const dailyActive = active('daily_active', 'day', 'The day.');
export const weeklyActive = active('weekly_active', 'week', 'The Monday on which the week begins.');
export const monthlyActive = active('monthly_active', 'month', 'The first day of the month.');
