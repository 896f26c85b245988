WITH event AS (
  SELECT {{ event_column('df_unified_id', 'VARCHAR') }} AS person, {{ event_column('df_event_log_id', 'VARCHAR') }} AS log_id,
    {{ event_column('df_event_name', 'VARCHAR') }} AS name, coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }}) AS event_at
  FROM {{ source('dfinery', 'event_logs') }}
), placed AS (
  SELECT *, CAST(date_trunc('week', CAST({{ wall_clock_begin() }}event_at{{ wall_clock_end() }} AS DATE)) AS DATE) AS period, min(CAST(date_trunc('week', CAST({{ wall_clock_begin() }}event_at{{ wall_clock_end() }} AS DATE)) AS DATE)) OVER (PARTITION BY person) AS first_period
  FROM event
)
SELECT period AS week, count(DISTINCT person) AS people,
  count(DISTINCT person) FILTER (WHERE period = first_period) AS new_people, count(*) AS events,
  count(*) FILTER (WHERE name = 'df_start_session') AS sessions
FROM placed
WHERE period IS NOT NULL
GROUP BY period
