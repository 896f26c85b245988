-- The events of all sessions are all events.
SELECT *
FROM (SELECT coalesce(sum(events), 0) AS in_sessions FROM {{ ref('sessions') }}) AS sessions,
  (SELECT count(*) AS in_logs FROM {{ source('dfinery', 'event_logs') }}) AS logs
WHERE in_sessions <> in_logs
