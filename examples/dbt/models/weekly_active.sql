-- People and events of each week that has an event.
WITH event_periods AS (
  SELECT *, min(period) OVER (PARTITION BY person) AS first_period
  FROM (SELECT person, name, CAST(date_trunc('week', day) AS DATE) AS period FROM {{ events() }})
)
SELECT period AS week, count(DISTINCT person) AS people,
  count(DISTINCT person) FILTER (WHERE period = first_period) AS new_people, count(*) AS events,
  count(*) FILTER (WHERE name = 'df_start_session') AS sessions
FROM event_periods
WHERE period IS NOT NULL
GROUP BY period
