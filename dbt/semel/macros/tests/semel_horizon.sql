{#- No event was published again later than this: the promise that lets a run read only a part of the effects. Of landing,
    the whole of it. -#}
{% test semel_horizon(model, hours) %}

select event_id, min(published_at) as first_published_at, max(published_at) as last_published_at
from {{ model }}
group by event_id
having {{ semel.semel_micros('max(published_at)') }} - {{ semel.semel_micros('min(published_at)') }} > 3600000000 * {{ hours | int }}

{% endtest %}
