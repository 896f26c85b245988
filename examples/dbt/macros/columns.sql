{#- A column of event_logs by its name in the export, as a value of that type; NULL of that type where there is none. -#}
{% macro event_column(name, type) -%}
  {{ column_or_null(source('dfinery', 'event_logs'), name, type) }}
{%- endmacro %}

{#- The same of event_items, whose item columns have no prefix. -#}
{% macro item_column(name, type) -%}
  {{ column_or_null(source('dfinery', 'event_items'), name.removeprefix('df_items_'), type) }}
{%- endmacro %}

{% macro column_or_null(relation, name, type) -%}
  {%- set found = namespace(type=none) -%}
  {%- if execute -%}
    {%- for column in adapter.get_columns_in_relation(relation) if column.name == name -%}
      {%- set found.type = column.data_type -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if found.type is none -%} CAST(NULL AS {{ type }})
  {%- elif found.type == type or type.startswith('TIMESTAMP') -%} "{{ name }}"
  {%- else -%} TRY_CAST("{{ name }}" AS {{ type }})
  {%- endif -%}
{%- endmacro %}

{#- The events, with the values that the models read. -#}
{% macro events() -%}
(SELECT {{ event_column('df_unified_id', 'VARCHAR') }} AS person, {{ event_column('df_event_log_id', 'VARCHAR') }} AS log_id,
    {{ event_column('df_event_name', 'VARCHAR') }} AS name, {{ event_column('df_order_id', 'VARCHAR') }} AS order_id,
    {{ event_column('df_total_purchase_amount', 'DOUBLE') }} AS total_purchase_amount,
    {{ event_column('df_discount', 'DOUBLE') }} AS discount, {{ event_column('df_delivery_charge', 'DOUBLE') }} AS delivery_charge,
    {{ event_column('df_payment_method', 'VARCHAR') }} AS payment_method, {{ time_columns() }}
  FROM {{ source('dfinery', 'event_logs') }})
{%- endmacro %}

{#- The items, in the same way. -#}
{% macro items() -%}
(SELECT {{ item_column('df_unified_id', 'VARCHAR') }} AS person, {{ item_column('df_event_log_id', 'VARCHAR') }} AS log_id,
    {{ item_column('df_event_name', 'VARCHAR') }} AS name, {{ item_column('df_event_detail_log_id', 'VARCHAR') }} AS detail_log_id,
    item_position, {{ item_column('df_items_df_item_id', 'VARCHAR') }} AS item_id,
    {{ item_column('df_items_df_item_name', 'VARCHAR') }} AS item_name,
    {%- for level in range(1, 6) %}
    {{ item_column('df_items_df_category' ~ level, 'VARCHAR') }} AS category{{ level }},
    {%- endfor %}
    {{ item_column('df_items_df_price', 'DOUBLE') }} AS price, {{ item_column('df_items_df_quantity', 'BIGINT') }} AS quantity,
    {{ item_column('df_items_df_discount', 'DOUBLE') }} AS discount, {{ time_columns() }}
  FROM {{ source('dfinery', 'event_items') }})
{%- endmacro %}

{#- When an event occurred, else when it arrived; and its day by the clock of the zone of the file. -#}
{% macro time_columns() -%}
  {%- set at = 'coalesce(' ~ event_column('df_correction_datetime', 'TIMESTAMP') ~ ', ' ~ event_column('df_server_datetime', 'TIMESTAMP') ~ ')' -%}
  {%- set wall = "timezone('" ~ var('timezone') ~ "', " ~ at ~ ')' if var('timezone') else at -%}
  {{ at }} AS event_at, CAST({{ wall }} AS DATE) AS day
{%- endmacro %}

{#- By event name the columns of event_logs, neither ids nor system columns, that hold a value. -#}
{% macro properties() -%}
  {%- set system = ['_key', 'event_date', 'df_unified_id', 'df_api_version', 'df_event_name', 'df_server_datetime', 'df_correction_datetime', 'df_event_detail_log_id', 'df_event_log_id', '_rescued', '_loaded_at'] -%}
  {%- set filled = [] -%}
  {%- if execute -%}
    {%- for column in adapter.get_columns_in_relation(source('dfinery', 'event_logs')) if column.name not in system -%}
      {%- do filled.append('CASE WHEN count("' ~ column.name.replace('"', '""') ~ '") > 0 THEN \'' ~ column.name.replace("'", "''") ~ "' END") -%}
    {%- endfor -%}
  {%- endif -%}
(SELECT {{ event_column('df_event_name', 'VARCHAR') }} AS name,
    list_filter(CAST([{{ filled | join(', ') }}] AS VARCHAR[]), lambda name: name IS NOT NULL) AS properties
  FROM {{ source('dfinery', 'event_logs') }} GROUP BY 1)
{%- endmacro %}
