{#- What most people write. It is wrong, dbt reports success, and the package's tests say so. -#}
{{ config(materialized='incremental', unique_key='event_id') }}

select * from {{ source('semel', 'landing') }}
{% if is_incremental() %}
where received_at > (select max(received_at) from {{ this }})
{% endif %}
