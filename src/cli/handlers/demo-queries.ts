/** What the demo asks of the table it has just loaded, as a person would. */
export const DEMO_QUERIES: readonly { readonly title: string; readonly sql: string }[] = [
  {
    title: 'The most frequent events',
    sql: `SELECT df_event_name, count(*) AS events, count(DISTINCT df_unified_id) AS people
FROM event_logs GROUP BY ALL ORDER BY events DESC LIMIT 5`,
  },
  {
    title: 'Revenue by day: event_logs holds each purchase once, however many items it has',
    sql: `SELECT CAST(CAST(df_server_datetime AS DATE) AS VARCHAR) AS day, count(*) AS purchases, round(sum(df_total_purchase_amount)) AS revenue
FROM event_logs WHERE df_event_name = 'df_purchase' GROUP BY ALL ORDER BY day DESC LIMIT 5`,
  },
  {
    title: 'What sells: one row an item',
    sql: `SELECT df_item_name, sum(df_quantity) AS sold, round(sum(df_price * df_quantity)) AS revenue
FROM event_items GROUP BY ALL ORDER BY sold DESC LIMIT 5`,
  },
];

/** Events of each day, as written by the service. */
export const CHART_QUERY = `SELECT CAST(CAST(df_server_datetime AS DATE) AS VARCHAR) AS day, count(*) AS events
FROM event_logs GROUP BY ALL ORDER BY day DESC LIMIT 14`;
