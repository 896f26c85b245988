-- People by the week of their first event, and how many of them had an event in each later week.
WITH active_weeks AS (
  SELECT DISTINCT person, CAST(date_trunc('week', day) AS DATE) AS week
  FROM {{ events() }}
  WHERE person IS NOT NULL AND event_at IS NOT NULL
), weeks_with_cohort AS (
  SELECT person, week, min(week) OVER (PARTITION BY person) AS cohort_week
  FROM active_weeks
), people_by_week AS (
  SELECT cohort_week, date_diff('day', cohort_week, week) // 7 AS weeks_later, count(*) AS people
  FROM weeks_with_cohort
  GROUP BY 1, 2
)
SELECT cohort_week, weeks_later, people, max(people) OVER (PARTITION BY cohort_week) AS cohort_people,
  people / max(people) OVER (PARTITION BY cohort_week) AS share
FROM people_by_week
