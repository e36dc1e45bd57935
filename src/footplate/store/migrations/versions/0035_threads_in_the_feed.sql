lock table events in access exclusive mode;

drop trigger add_event_to_feed on events;
create trigger add_event_to_feed after insert on events for each row
    when (new.ref_seq is null and (
        starts_with(new.type, 'session.status_')
        or new.type in ('session.updated', 'session.error', 'user.tool_confirmation', 'agent.custom_tool_use',
                        'session.thread_created', 'session.thread_status_idle')
        or starts_with(new.type, 'step.') or starts_with(new.type, 'question.') or starts_with(new.type, 'batch.')
        or case when new.type in ('agent.tool_use', 'agent.mcp_tool_use') then new.body ->> 'evaluated_permission' = 'ask' end))
    execute function add_event_to_feed();
