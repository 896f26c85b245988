-- The export repeats the amounts of a purchase on each row of its items; here each purchase is there once.
SELECT log_id AS df_event_log_id, order_id AS df_order_id, person AS df_unified_id, day, event_at AS purchased_at,
  total_purchase_amount AS amount, discount, delivery_charge, payment_method
FROM {{ events() }}
WHERE name = 'df_purchase'
