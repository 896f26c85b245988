-- What events there are, how often, and with which properties.
SELECT e.name AS df_event_name, count(*) AS events, count(DISTINCT person) AS people, count(DISTINCT day) AS days,
  min(event_at) AS first_seen_at, max(event_at) AS last_seen_at, any_value(p.properties) AS properties
FROM {{ events() }} AS e
JOIN {{ properties() }} AS p ON p.name IS NOT DISTINCT FROM e.name
GROUP BY 1
