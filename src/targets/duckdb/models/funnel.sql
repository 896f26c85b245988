-- How many people did the first step, then the second, and so on, within some days of their first step. A person is counted at a step when any of their first steps leads there, not only the earliest.
WITH RECURSIVE placed AS (
  SELECT person, name, event_at, row_number() OVER (PARTITION BY person ORDER BY event_at, log_id) AS n
  FROM {{ events() }}
  WHERE person IS NOT NULL AND event_at IS NOT NULL AND list_contains({{ steps }}, name)
), reached AS (
  SELECT 1 AS step, person, event_at AS began, n
  FROM placed
  WHERE name = ({{ steps }})[1]
  UNION ALL
  SELECT reached.step + 1, reached.person, reached.began, min(placed.n)
  FROM reached
  JOIN placed ON placed.person = reached.person AND placed.n > reached.n AND placed.name = ({{ steps }})[reached.step + 1]
    AND placed.event_at <= reached.began + to_days(CAST({{ days }} AS INTEGER))
  GROUP BY ALL
), named AS (
  SELECT unnest(range(1, len({{ steps }}) + 1)) AS step, unnest({{ steps }}) AS df_event_name
), counted AS (
  SELECT named.step, named.df_event_name, count(DISTINCT reached.person) AS people
  FROM named
  LEFT JOIN reached ON reached.step = named.step
  GROUP BY ALL
)
SELECT step, df_event_name, people, people / nullif(first_value(people) OVER in_order, 0) AS share_of_first,
  people / nullif(lag(people) OVER in_order, 0) AS share_of_previous
FROM counted
WINDOW in_order AS (ORDER BY step)
ORDER BY step
