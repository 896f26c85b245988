-- The items of the purchases, with what an item costs and how many were bought.
SELECT log_id AS df_event_log_id, detail_log_id AS df_event_detail_log_id, item_position, person AS df_unified_id, day,
  event_at AS purchased_at, item_id, item_name, category1, category2, category3, category4, category5, price, quantity, discount,
  price * quantity AS amount
FROM {{ items() }}
WHERE name = 'df_purchase'
