{#- Every landed event has exactly one row: none doubled, none missing, none invented. -#}
{% test semel_unique_effect(model, landing=none) %}

select event_id, 'doubled' as fault
from {{ model }}
group by event_id
having count(*) > 1

union all

select distinct event_id, 'missing' as fault
from {{ landing or source('semel', 'landing') }}
where event_id not in (select event_id from {{ model }})

union all

select distinct event_id, 'invented' as fault
from {{ model }}
where event_id not in (select event_id from {{ landing or source('semel', 'landing') }})

{% endtest %}
