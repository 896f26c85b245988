WITH event AS (
  SELECT {{ event_column('df_unified_id', 'VARCHAR') }} AS person, {{ event_column('df_event_log_id', 'VARCHAR') }} AS log_id,
    {{ event_column('df_event_name', 'VARCHAR') }} AS name, coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }}) AS event_at
  FROM {{ source('dfinery', 'event_logs') }}
), active AS (
  SELECT DISTINCT person, CAST(date_trunc('week', CAST({{ wall_clock_begin() }}event_at{{ wall_clock_end() }} AS DATE)) AS DATE) AS week
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
FROM counted
