-- Rules stay with the place of a project: see domain/project_rules.py.
alter table projects add column place text collate "C";
create index projects_at_place on projects (organisation, place);
create index projects_ruled on projects (organisation) where permissions <> '{}';

-- The rules of projects, of all that are at the same places, and of `named`, a place that is no project of the session.
-- A place inside another or around it adds what it denies or asks about, and its hooks: what it allows is for its own
-- sessions. Its rules for paths are relative to another directory, so there files and commands are asked about.
create function project_rules(owner text, project_ids text[], named text) returns jsonb language sql stable as $$
    with worked_on as (
        select place from projects where id = any(project_ids) and organisation = owner
        union select named where named is not null
    )
    select coalesce(jsonb_agg(distinct rules), '[]') from (
        select p.permissions as rules from projects p where p.id = any(project_ids) and p.organisation = owner
        union all
        select case when p.place = w.place then p.permissions
                    else jsonb_strip_nulls(jsonb_build_object(
                        'deny', p.permissions -> 'deny',
                        'ask', case when jsonb_path_exists(p.permissions, '$.*[*] ? (@ like_regex
                                   "^(Read|Edit|Write|Glob|Grep|NotebookEdit|MultiEdit)[(](/?[^/~]|/$)")')
                               then coalesce(p.permissions -> 'ask', '[]') || '["Bash", "Edit", "Glob", "Grep", "Read"]'
                               else p.permissions -> 'ask' end,
                        'hooks', p.permissions -> 'hooks')) end
        from projects p join worked_on w
          on p.place = w.place or starts_with(p.place, w.place || '/') or starts_with(w.place, p.place || '/')
        where p.organisation = owner and p.permissions <> '{}'
    ) all_rules
$$;
