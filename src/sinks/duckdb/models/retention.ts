import { dayOf, eventTimes } from './event-time.ts';
import type { Model } from './model.ts';

/** People by the week of their first event, and how many of them had an event in each later week. */
export const retention: Model = {
  name: 'retention',
  grain: 'One row a week of first events and a number of weeks after it in which somebody of them had an event.',
  columns: {
    cohort_week: 'The Monday of the week of the first event.',
    weeks_later: '0 for that week itself, 1 for the next…',
    people: 'Of these people, those with an event in that week.',
    cohort_people: 'People whose first event is of the cohort week.',
    share: 'people / cohort_people.',
  },
  sql: (source) => `WITH event AS (
  ${eventTimes(source)}
), active AS (
  SELECT DISTINCT person, CAST(date_trunc('week', ${dayOf(source, 'event_at')}) AS DATE) AS week
  FROM event
  WHERE person IS NOT NULL AND event_at IS NOT NULL
), placed AS (
  SELECT person, week, min(week) OVER (PARTITION BY person) AS cohort_week
  FROM active
), counted AS (
  SELECT cohort_week, date_diff('day', cohort_week, week) // 7 AS weeks_later, count(*) AS people
  FROM placed
  GROUP BY 1, 2
)
SELECT cohort_week, weeks_later, people, max(people) OVER (PARTITION BY cohort_week) AS cohort_people,
  people / max(people) OVER (PARTITION BY cohort_week) AS share
FROM counted`,
};
