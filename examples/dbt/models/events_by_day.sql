-- Events of each day by name. A build reads only the days whose rows changed since the one before, and removes those that have no
-- rows any more: it needs nothing from the runs that loaded them.
{{ config(
  materialized='incremental',
  unique_key='event_date',
  incremental_strategy='delete+insert',
  pre_hook="{% if is_incremental() %}DELETE FROM {{ this }} WHERE event_date IN (SELECT event_date FROM {{ source('dfinery', '_dfinery_days') }} WHERE rows_stored = 0){% endif %}"
) }}
SELECT event_date, df_event_name, count(*) AS events, count(DISTINCT df_unified_id) AS people,
  (SELECT changed_at FROM {{ source('dfinery', '_dfinery_days') }} AS days WHERE days.event_date = logs.event_date) AS changed_at
FROM {{ source('dfinery', 'event_logs') }} AS logs
{% if is_incremental() -%}
WHERE event_date IN (
  SELECT event_date FROM {{ source('dfinery', '_dfinery_days') }}
  WHERE changed_at > coalesce((SELECT max(changed_at) FROM {{ this }}), '-infinity')
)
{%- endif %}
GROUP BY event_date, df_event_name
