-- How many people did the first step, then the second, and so on, within some days of their first step. A person may have
-- done the first step several times: each may lead on, not only the earliest.
WITH RECURSIVE step_events AS (
  -- The events that are steps, numbered for each person.
  SELECT person, name, event_at, row_number() OVER (PARTITION BY person ORDER BY event_at, log_id) AS n
  FROM {{ events() }}
  WHERE person IS NOT NULL AND event_at IS NOT NULL AND list_contains({{ steps }}, name)
), reached AS (
  -- From each first step on: the earliest event of each step after it.
  SELECT 1 AS step, person, event_at AS began, n
  FROM step_events
  WHERE name = ({{ steps }})[1]
  UNION ALL
  SELECT step + 1, reached.person, began, min(later.n)
  FROM reached
  JOIN step_events AS later ON later.person = reached.person AND later.n > reached.n
    AND later.name = ({{ steps }})[step + 1] AND later.event_at <= began + to_days(CAST({{ days }} AS INTEGER))
  GROUP BY ALL
), numbered_steps AS (
  SELECT unnest(range(1, len({{ steps }}) + 1)) AS step, unnest({{ steps }}) AS df_event_name
), people_by_step AS (
  SELECT step, df_event_name, count(DISTINCT person) AS people
  FROM numbered_steps
  LEFT JOIN reached USING (step)
  GROUP BY ALL
)
SELECT step, df_event_name, people, people / nullif(first_value(people) OVER in_order, 0) AS share_of_first,
  people / nullif(lag(people) OVER in_order, 0) AS share_of_previous
FROM people_by_step
WINDOW in_order AS (ORDER BY step)
ORDER BY step
