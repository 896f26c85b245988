/** The columns that every export has, as a target names them. */
export const SYSTEM = [
  'df_api_version',
  'df_correction_datetime',
  'df_event_detail_log_id',
  'df_event_log_id',
  'df_event_name',
  'df_server_datetime',
  'df_unified_id',
];

/** The properties that are requested beside the system columns: few, since each costs time. */
export const PROPERTIES = [
  'member_no',
  'level',
  'memo',
  'Grade',
  'grade',
  'df_items_color',
  'plan code',
  'pasted',
  'later',
];
