-- Sessions by the platform's own start and end events. Where one of the two is missing, a pause of more than 30 minutes separates
-- two sessions, unless it lies between a start event and its end event. An event without a person or a time is a session of its own.
-- So the events of all sessions are all events.
WITH marked AS (
  -- `lone_event` numbers the events that are a session of their own; it is null for all others.
  SELECT *, CASE WHEN person IS NULL OR event_at IS NULL THEN row_number() OVER (ORDER BY log_id) END AS lone_event,
    coalesce(name = 'df_start_session', false) AS is_start, coalesce(name = 'df_end_session', false) AS is_end,
    CASE name WHEN 'df_start_session' THEN 0 WHEN 'df_end_session' THEN 2 ELSE 1 END AS rank
  FROM {{ events() }}
), segmented AS (
  -- A segment goes from one start event to the next one; segment 0 is before the first.
  SELECT *, row_number() OVER in_order AS position,
    count(*) FILTER (WHERE is_start) OVER (in_order ROWS UNBOUNDED PRECEDING) AS segment,
    lag(event_at) OVER in_order AS event_at_before, coalesce(lag(is_end) OVER in_order, false) AS is_after_end
  FROM marked
  WINDOW in_order AS (PARTITION BY person, lone_event ORDER BY event_at, rank, log_id)
), enclosed AS (
  -- Enclosed are a start event, the first end event of its segment, and what is between.
  SELECT *, segment > 0
    AND count(*) FILTER (WHERE is_end) OVER (in_segment ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) = 0
    AND count(*) FILTER (WHERE is_end) OVER (in_segment ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) > 0 AS is_enclosed
  FROM segmented
  WINDOW in_segment AS (PARTITION BY person, lone_event, segment ORDER BY position)
), with_beginnings AS (
  -- `began_by` is null for an event that does not begin a session.
  SELECT *, CASE WHEN is_start THEN 'start_event' WHEN event_at_before IS NULL THEN 'first_event'
    WHEN is_after_end THEN 'end_event'
    WHEN NOT is_enclosed AND event_at - event_at_before > INTERVAL 30 MINUTE THEN 'gap' END AS began_by
  FROM enclosed
), with_numbers AS (
  SELECT *, count(began_by) OVER (PARTITION BY person, lone_event ORDER BY position ROWS UNBOUNDED PRECEDING) AS number
  FROM with_beginnings
), session AS (
  SELECT person, lone_event, number, arg_min(log_id, position) AS session_id, max(began_by) AS began_by,
    arg_min(day, position) AS day, min(event_at) AS started_at, max(event_at) AS ended_at, bool_or(is_start) AS has_start,
    bool_or(is_end) AS has_end, count(*) AS events
  FROM with_numbers
  GROUP BY person, lone_event, number
)
SELECT session_id, person AS df_unified_id,
  CASE WHEN person IS NOT NULL THEN row_number() OVER (PARTITION BY person ORDER BY started_at, number, session_id) END AS session_number,
  day, started_at, ended_at,
  CASE WHEN events > 1 THEN date_diff('millisecond', started_at, ended_at) / 1000 END AS seconds,
  CASE WHEN has_start AND has_end THEN 'exact' WHEN events > 1 THEN 'at_least' ELSE 'unknown' END AS length,
  began_by,
  CASE WHEN has_end THEN 'end_event'
    ELSE coalesce(lead(began_by) OVER (PARTITION BY person, lone_event ORDER BY number), 'last_event') END AS ended_by,
  events
FROM session
