SELECT {{ item_column('df_event_log_id', 'VARCHAR') }} AS df_event_log_id,
  {{ item_column('df_event_detail_log_id', 'VARCHAR') }} AS df_event_detail_log_id, item_position,
  {{ item_column('df_unified_id', 'VARCHAR') }} AS df_unified_id, CAST({{ wall_clock_begin() }}coalesce({{ item_column('df_correction_datetime', 'TIMESTAMP') }}, {{ item_column('df_server_datetime', 'TIMESTAMP') }}){{ wall_clock_end() }} AS DATE) AS day, coalesce({{ item_column('df_correction_datetime', 'TIMESTAMP') }}, {{ item_column('df_server_datetime', 'TIMESTAMP') }}) AS purchased_at,
  {{ item_column('df_items_df_item_id', 'VARCHAR') }} AS item_id, {{ item_column('df_items_df_item_name', 'VARCHAR') }} AS item_name,
  {{ item_column('df_items_df_category1', 'VARCHAR') }} AS category1, {{ item_column('df_items_df_category2', 'VARCHAR') }} AS category2, {{ item_column('df_items_df_category3', 'VARCHAR') }} AS category3, {{ item_column('df_items_df_category4', 'VARCHAR') }} AS category4, {{ item_column('df_items_df_category5', 'VARCHAR') }} AS category5,
  {{ item_column('df_items_df_price', 'DOUBLE') }} AS price, {{ item_column('df_items_df_quantity', 'BIGINT') }} AS quantity, {{ item_column('df_items_df_discount', 'DOUBLE') }} AS discount,
  {{ item_column('df_items_df_price', 'DOUBLE') }} * {{ item_column('df_items_df_quantity', 'BIGINT') }} AS amount
FROM {{ source('dfinery', 'event_items') }}
WHERE {{ item_column('df_event_name', 'VARCHAR') }} = 'df_purchase'
