SELECT {{ event_column('df_event_name', 'VARCHAR') }} AS df_event_name, count(*) AS events,
  count(DISTINCT {{ event_column('df_unified_id', 'VARCHAR') }}) AS people, count(DISTINCT CAST({{ wall_clock_begin() }}coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }}){{ wall_clock_end() }} AS DATE)) AS days,
  min(coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }})) AS first_seen_at, max(coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }})) AS last_seen_at, {{ filled_properties() }} AS properties
FROM {{ source('dfinery', 'event_logs') }}
GROUP BY 1
