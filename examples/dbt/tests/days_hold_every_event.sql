-- The events of all days are all events with a time.
SELECT *
FROM (SELECT coalesce(sum(events), 0) AS in_days FROM {{ ref('daily_active') }}) AS days,
  (SELECT count(*) AS in_logs FROM {{ source('dfinery', 'event_logs') }}
   WHERE df_correction_datetime IS NOT NULL OR df_server_datetime IS NOT NULL) AS logs
WHERE in_days <> in_logs
