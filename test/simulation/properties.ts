/** What is asked for beside the system columns: few, as every one costs time. */
export const PROPERTIES = ['member_no', 'level', 'memo', 'Grade', 'grade', 'df_items_color', 'plan code', 'later'];
