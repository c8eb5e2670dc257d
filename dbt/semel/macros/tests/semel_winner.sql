{#- The model has the row that wins over everything landed: it equals the view. Run it when nothing lands, or it names
    the events that landed since the last run. -#}
{% test semel_winner(model, landing=none) %}

with winner as (

  {{ semel.semel_first(landing or source('semel', 'landing')) }}

)

select winner.event_id, winner.delivery_id
from winner
left join {{ model }} as effect
  on effect.event_id = winner.event_id
  and effect.version = winner.version
  and effect.published_at = winner.published_at
  and effect.message_id = winner.message_id
  and effect.fingerprint = winner.fingerprint
  and effect.received_at = winner.received_at
  and effect.delivery_id = winner.delivery_id
  and effect.payload = winner.payload
where effect.event_id is null

{% endtest %}
