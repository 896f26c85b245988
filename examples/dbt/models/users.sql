SELECT {{ event_column('df_unified_id', 'VARCHAR') }} AS df_unified_id,
  min(coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }})) AS first_seen_at, max(coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }})) AS last_seen_at, arg_min({{ event_column('df_event_name', 'VARCHAR') }}, coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }})) AS first_event,
  min(coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }})) FILTER (WHERE {{ event_column('df_event_name', 'VARCHAR') }} = 'df_sign_up') AS signed_up_at,
  count(DISTINCT CAST({{ wall_clock_begin() }}coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }}){{ wall_clock_end() }} AS DATE)) AS active_days, count(*) AS events,
  count(*) FILTER (WHERE {{ event_column('df_event_name', 'VARCHAR') }} = 'df_purchase') AS purchases,
  sum({{ event_column('df_total_purchase_amount', 'DOUBLE') }}) FILTER (WHERE {{ event_column('df_event_name', 'VARCHAR') }} = 'df_purchase') AS purchase_amount
FROM {{ source('dfinery', 'event_logs') }}
WHERE {{ event_column('df_unified_id', 'VARCHAR') }} IS NOT NULL
GROUP BY 1
