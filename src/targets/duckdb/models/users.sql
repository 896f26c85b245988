-- People by their unified id; events that name nobody are in no row.
SELECT person AS df_unified_id, min(event_at) AS first_seen_at, max(event_at) AS last_seen_at,
  arg_min(name, event_at) AS first_event, min(event_at) FILTER (WHERE name = 'df_sign_up') AS signed_up_at,
  count(DISTINCT day) AS active_days, count(*) AS events,
  count(*) FILTER (WHERE name = 'df_purchase') AS purchases,
  sum(total_purchase_amount) FILTER (WHERE name = 'df_purchase') AS purchase_amount
FROM {{ events() }}
WHERE person IS NOT NULL
GROUP BY 1
