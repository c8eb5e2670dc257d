{{
  config(
    materialized='incremental',
    unique_key='event_id',
    on_schema_change='fail',
    partition_by={'field': 'published_at', 'data_type': 'timestamp'} if target.type == 'bigquery' else none,
    cluster_by=['event_id'] if target.type == 'bigquery' else none,
  )
}}

{#- A batch's winners are not the winners: they meet the rows that are there, and are picked again. -#}

{%- set since = semel.semel_since() if is_incremental() else none -%}
{%- set bounds = semel.semel_bounds(since) if is_incremental() else none %}

with batch as (

  select {{ semel.semel_columns() }}
  from {{ source('semel', 'landing') }}
  {%- if since is not none %}
  where received_at >= {{ since }}
  {%- endif %}

),

candidates as (

  select {{ semel.semel_columns() }}
  from batch
  {%- if is_incremental() %}

  union all

  select {{ semel.semel_columns() }}
  from {{ this }}
  where event_id in (select event_id from batch)
    {%- if bounds is not none %}
    and published_at between {{ bounds[0] }} and {{ bounds[1] }}
    {%- endif %}
  {%- endif %}

)

{{ semel.semel_first('candidates') }}
