SELECT {{ event_column('df_event_log_id', 'VARCHAR') }} AS df_event_log_id,
  {{ event_column('df_order_id', 'VARCHAR') }} AS df_order_id, {{ event_column('df_unified_id', 'VARCHAR') }} AS df_unified_id,
  CAST({{ wall_clock_begin() }}coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }}){{ wall_clock_end() }} AS DATE) AS day, coalesce({{ event_column('df_correction_datetime', 'TIMESTAMP') }}, {{ event_column('df_server_datetime', 'TIMESTAMP') }}) AS purchased_at,
  {{ event_column('df_total_purchase_amount', 'DOUBLE') }} AS amount, {{ event_column('df_discount', 'DOUBLE') }} AS discount,
  {{ event_column('df_delivery_charge', 'DOUBLE') }} AS delivery_charge,
  {{ event_column('df_payment_method', 'VARCHAR') }} AS payment_method
FROM {{ source('dfinery', 'event_logs') }}
WHERE {{ event_column('df_event_name', 'VARCHAR') }} = 'df_purchase'
